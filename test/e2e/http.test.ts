import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { makeCertificate } from "../support/certificate.ts";
import { HttpClient, HttpProcess } from "../support/http-process.ts";
import { expectNoLeftovers, vmsOf } from "../support/leftovers.ts";
import { describeWithVms, TestHome } from "../support/real-vm.ts";
import { TemporaryDirectory } from "../support/temporary-directory.ts";
import { eventually } from "../support/test-server.ts";

const MIB = 1_048_576;
const TOKENS = "ann:token-of-ann\nbob:token-of-bob\n";

/** The five-tool server over TLS, which knows Ann and Bob. */
class HttpServer implements AsyncDisposable {
  readonly home = new TestHome();
  readonly #directory = new TemporaryDirectory();
  #process!: HttpProcess;
  #ca!: string;

  static async start(extra: Record<string, string> = {}): Promise<HttpServer> {
    const server = new HttpServer();
    const { certPath, keyPath } = makeCertificate(server.#directory, "localhost");
    server.#ca = readFileSync(certPath, "utf8");
    const tokens = server.#directory.join("tokens");
    writeFileSync(tokens, TOKENS);
    const env = server.home.env({
      IGN_MCP_HTTP_TOKENS_FILE: tokens,
      IGN_MCP_HTTP_TLS_CERT: certPath,
      IGN_MCP_HTTP_TLS_KEY: keyPath,
      IGN_MCP_POOL: "0",
      ...extra,
    });
    server.#process = await HttpProcess.start(["serve", "--http", "127.0.0.1:0"], env);
    return server;
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** With `sessionId` it goes on in that session. */
  client(name: "ann" | "bob", sessionId?: string): Promise<HttpClient> {
    return HttpClient.connect(this.#process.url, `token-of-${name}`, { ca: this.#ca }, sessionId);
  }

  /** The status of a POST with these headers and no body. */
  async status(headers: Record<string, string>): Promise<number> {
    const init = { method: "POST", headers, tls: { ca: this.#ca } } as RequestInit;
    return (await fetch(this.#process.url, init)).status;
  }

  end(signal?: NodeJS.Signals) {
    return this.#process.end(signal);
  }

  countVmms(): number {
    return vmsOf(this.pid).filter((info) => info.name.startsWith("qemu-system")).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const vms = vmsOf(this.pid);
    try {
      await this.#process[Symbol.asyncDispose]();
      await expectNoLeftovers(this.home, vms);
    } finally {
      this.#directory[Symbol.dispose]();
      this.home[Symbol.dispose]();
    }
  }
}

async function open(client: HttpClient): Promise<string> {
  return String((await client.ok("open_session"))["session_id"]);
}

describeWithVms("sessions over HTTP", () => {
  test("do what those over stdio do, with a file of 10 MiB and progress", async () => {
    await using server = await HttpServer.start();
    await using client = await server.client("ann");
    const session_id = await open(client);
    const content = Buffer.alloc(10 * MIB, "0123456789");
    const sum = new Bun.CryptoHasher("sha256").update(content).digest("hex");
    await client.ok("write_file", {
      session_id,
      path: "/root/f",
      content_base64: content.toString("base64"),
    });
    const { stdout } = await client.ok("run", { session_id, command: "sha256sum < /root/f" });
    expect(stdout).toBe(`${sum}  -\n`);
    let told = 0;
    const slow = { session_id, command: "sleep 4; exit 3" };
    const { structuredContent } = await client.call("run", slow, { onprogress: () => void told++ });
    expect(structuredContent).toMatchObject({ exit_code: 3 });
    expect(told).toBeGreaterThan(0);
    await client.ok("reset", { session_id });
    expect((await client.ok("run", { session_id, command: "ls /root/f" }))["exit_code"]).not.toBe(0);
    await client.ok("close", { session_id });
    expect(server.countVmms()).toBe(0);
    expect(await server.end()).toMatchObject({ status: 0, stdout: "" });
  });

  test("belong to the principal and the MCP session that opened them, and share one cap", async () => {
    await using server = await HttpServer.start({ IGN_MCP_MAX_SESSIONS: "2" });
    await using ann = await server.client("ann");
    await using bob = await server.client("bob");
    const session_id = await open(ann);
    const foreign = await bob.call("run", { session_id, command: "id" });
    expect([foreign.isError, JSON.stringify(foreign.content)]).toEqual([
      true,
      expect.stringContaining("there is no session"),
    ]);
    const stolen = { "mcp-session-id": ann.sessionId, authorization: "Bearer token-of-bob" };
    expect(await server.status(stolen)).toBe(404);
    expect(await server.status({ "mcp-session-id": ann.sessionId })).toBe(401);
    expect(await server.status({ authorization: "Bearer token-of-ann", host: "evil.example" })).toBe(403);
    expect(
      await server.status({ authorization: "Bearer token-of-ann", origin: "https://evil.example" }),
    ).toBe(403);
    await open(bob);
    expect((await bob.call("open_session")).isError).toBe(true);
    await ann.terminate();
    expect(server.countVmms()).toBe(1);
    await open(bob);
  });

  test("end with an MCP session nobody uses", async () => {
    await using server = await HttpServer.start({ IGN_MCP_HTTP_IDLE_SECS: "5" });
    const client = await server.client("ann");
    await open(client);
    await client[Symbol.asyncDispose](); // its stream would be use
    expect(server.countVmms()).toBe(1);
    await eventually("the VM of the unused MCP session has ended", 30_000, () => server.countVmms() === 0);
  });

  test("lose the run of a client that vanished, and go on", async () => {
    await using server = await HttpServer.start();
    await using leaving = await server.client("ann");
    const session_id = await open(leaving);
    const command = "touch /root/begun; sleep 299";
    leaving.call("run", { session_id, command, timeout_s: 600 }).catch(() => undefined);
    const count = async (client: HttpClient) => {
      const found = { session_id, command: "test -e /root/begun && pgrep -fc 'sleep 29[9]'" };
      return Number(((await client.call("run", found)).structuredContent as { stdout: string }).stdout);
    };
    await eventually("the run has begun", 20_000, async () => (await count(leaving)) > 0);
    const { sessionId } = leaving;
    await leaving[Symbol.asyncDispose]();
    await using back = await server.client("ann", sessionId);
    await eventually(
      "the run of the vanished client has ended",
      20_000,
      async () => (await count(back)) === 0,
    );
  });

  test.each(["SIGTERM", "SIGINT"] as const)(
    "are gone after %s, calls in flight and streams too",
    async (signal) => {
      await using server = await HttpServer.start();
      await using client = await server.client("ann");
      const session_id = await open(client);
      const call = client.call("run", { session_id, command: "sleep 600", timeout_s: 600 });
      await client.ok("run", { session_id, command: "while ! pgrep -f 'sleep 60[0]'; do sleep 0.05; done" });
      const vms = vmsOf(server.pid);
      const ended = await server.end(signal);
      expect(ended).toMatchObject({ status: 0, stdout: "" });
      expect(JSON.stringify(await call)).toContain("shut");
      await expectNoLeftovers(server.home, vms);
    },
  );
});
