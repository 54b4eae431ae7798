import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import type { AgentError } from "../../src/guest/agent-error.ts";
import { newCloneIdentity, tellCloned } from "../../src/guest/clone-identity.ts";
import type { TunnelHandler } from "../../src/guest/serve-tunnels.ts";
import type { Tunnel } from "../../src/guest/tunnel.ts";
import type { Vm } from "../../src/vm/vm.ts";
import { DirectVms, outputIn, runIn } from "../support/direct-vms.ts";
import { describeWithVms } from "../support/real-vm.ts";
import { rejection } from "../support/rejection.ts";
import { eventually } from "../support/test-server.ts";

const NEVER = new AbortController().signal;
const MIB = 1_048_576;
const CONCURRENT = 200;
const ECHO_PORT = 7007;

const echo: TunnelHandler = (tunnel) => tunnel.readable.pipeTo(tunnel.writable);

const ECHO_SERVER = `
import socket, threading
def serve(c):
    try:
        while (b := c.recv(65536)): c.sendall(b)
        c.shutdown(socket.SHUT_WR)
    except OSError: pass
    c.close()
s = socket.create_server(("127.0.0.1", ${ECHO_PORT}))
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
`;

/** Sends all on each of `count` connections at once, then the end, and says of how many all came back. */
const ECHO_CLIENTS = `
import asyncio, sys, hashlib
count, size = int(sys.argv[1]), int(sys.argv[2])
async def one(n):
    r, w = await asyncio.open_connection("127.0.0.1", 3128)
    sent = bytes((n + i * 7) & 255 for i in range(256)) * (size // 256)
    async def send():
        w.write(sent); await w.drain(); w.write_eof()
    _, got = await asyncio.gather(send(), r.read(-1))
    w.close()
    return got == sent
async def main():
    print(sum(await asyncio.gather(*(one(n) for n in range(count)))))
asyncio.run(main())
`;

/** Holds a connection and writes to a file what becomes of it. */
const HOLDER = `
import socket
try:
    c = socket.create_connection(("127.0.0.1", 3128))
    open("/tmp/state", "w").write("open")
    text = "read " + c.recv(100).decode()
except OSError as e: text = type(e).__name__
open("/tmp/state", "w").write(text)
`;

function python(program: string, ...args: (string | number)[]): string {
  return `python3 - ${args.join(" ")} <<'PROGRAM'\n${program}\nPROGRAM`;
}

async function inBackground(vm: Vm, program: string): Promise<void> {
  await outputIn(
    vm,
    `cat >/tmp/program.py <<'PROGRAM'\n${program}\nPROGRAM
    setsid python3 /tmp/program.py >/tmp/program.log 2>&1 </dev/null & `,
  );
}

function pattern(bytes: number): Uint8Array {
  return Uint8Array.from({ length: bytes }, (_, at) => at * 31 + (at >> 8));
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

async function readAll(tunnel: Tunnel): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of tunnel.readable) parts.push(part);
  return Buffer.concat(parts);
}

async function sendAll(tunnel: Tunnel, bytes: Uint8Array | string): Promise<void> {
  const writer = tunnel.writable.getWriter();
  await writer.write(typeof bytes === "string" ? Buffer.from(bytes) : bytes);
  await writer.close();
}

/** Descriptors of the agent in the guest */
async function agentDescriptors(vm: Vm): Promise<number> {
  return Number(await outputIn(vm, "ls /proc/1/fd | wc -l"));
}

async function stateIn(vm: Vm): Promise<string> {
  return (await runIn(vm, "cat /tmp/state")).stdout;
}

describeWithVms("tunnels", () => {
  let vms: DirectVms;
  let vm: Vm;
  let descriptorsBefore: number;

  beforeAll(async () => {
    vms = new DirectVms();
    vm = await vms.claim();
    await inBackground(vm, ECHO_SERVER);
    await vm.serveProxy(echo, NEVER);
    descriptorsBefore = await agentDescriptors(vm);
    await eventually("the echo server listens", 20_000, async () => {
      const { code } = await runIn(vm, `bash -c ': </dev/tcp/127.0.0.1/${ECHO_PORT}'`);
      return code === 0;
    });
  });
  afterAll(() => vms[Symbol.asyncDispose]());

  const noneIsLeft = () =>
    eventually(
      "the agent's descriptors are as before",
      10_000,
      async () => (await agentDescriptors(vm)) === descriptorsBefore,
    );

  test("into the guest carry a MiB each way at once", async () => {
    const tunnel = await vm.connectGuest(ECHO_PORT, NEVER);
    const bytes = pattern(MIB);
    const [, received] = await Promise.all([sendAll(tunnel, bytes), readAll(tunnel)]);
    expect(sha256(received)).toBe(sha256(bytes));
  });

  test("out of the guest carry a MiB each way at once", async () => {
    expect(await outputIn(vm, python(ECHO_CLIENTS, 1, MIB))).toBe("1\n");
  });

  test("are carried 200 at once, and leave nothing", async () => {
    expect(await outputIn(vm, python(ECHO_CLIENTS, CONCURRENT, 10_240))).toBe(`${CONCURRENT}\n`);
    const into = Array.from({ length: CONCURRENT }, async (_, at) => {
      const tunnel = await vm.connectGuest(ECHO_PORT, NEVER);
      const text = `tunnel ${at}`.repeat(100);
      const [, received] = await Promise.all([sendAll(tunnel, text), readAll(tunnel)]);
      return Buffer.from(received).toString() === text;
    });
    expect((await Promise.all(into)).every(Boolean)).toBe(true);
    await noneIsLeft();
  });

  test("end in one direction while the other goes on", async () => {
    const program = `
import socket
s = socket.create_server(("127.0.0.1", 7008))
open("/tmp/ready", "w")
c = s.accept()[0]
c.sendall(b"first"); c.shutdown(socket.SHUT_WR)
got = b""
while (b := c.recv(100)): got += b
open("/tmp/got", "wb").write(got)`;
    await inBackground(vm, program);
    await eventually("it listens", 20_000, async () => (await runIn(vm, "test -e /tmp/ready")).code === 0);
    const tunnel = await vm.connectGuest(7008, NEVER);
    expect(Buffer.from(await readAll(tunnel)).toString()).toBe("first");
    await sendAll(tunnel, "then");
    await eventually("it came", 10_000, async () => (await runIn(vm, "cat /tmp/got")).stdout === "then");
  });

  test("to a port nobody listens on are refused with the reason", async () => {
    const error = await rejection<AgentError>(vm.connectGuest(7999, NEVER));
    expect(error).toMatchObject({ refusal: "connect_failed", errno: "ECONNREFUSED" });
  });

  test("that the host aborts, or whose handler fails, are reset in the guest", async () => {
    const serving = new AbortController();
    await vm.serveProxy(() => Promise.reject(new Error("no")), serving.signal);
    await outputIn(vm, python(HOLDER));
    expect(await stateIn(vm)).toBe("ConnectionResetError");
    await vm.serveProxy(echo, NEVER);
    await noneIsLeft();
  });

  test("whose program is killed in the middle are over for the host, with what was carried", async () => {
    const tunnels: Tunnel[] = [];
    await vm.serveProxy((tunnel) => void tunnels.push(tunnel), NEVER);
    const killed = new AbortController();
    const program = `
import socket
c = socket.create_connection(("127.0.0.1", 3128))
while True: c.sendall(bytes(65536))`;
    const run = rejection<Error>(runIn(vm, python(program), killed.signal));
    await eventually("it connects", 20_000, () => tunnels.length === 1);
    const [tunnel] = tunnels as [Tunnel];
    const reader = tunnel.readable.getReader();
    await reader.read();
    const writer = tunnel.writable.getWriter();
    await writer.write(Buffer.from("never read"));
    killed.abort();
    await run;
    const drained = (async () => {
      while (!(await reader.read()).done);
    })();
    // Bytes it never read make the kernel send a RST.
    expect(await rejection<AgentError>(drained)).toMatchObject({ refusal: "reset", errno: "ECONNRESET" });
    expect(await rejection<AgentError>(writer.closed)).toMatchObject({ refusal: "reset" });
    await vm.serveProxy(echo, NEVER);
    await noneIsLeft();
  });

  test("are what curl and others use by themselves", async () => {
    const requests: string[] = [];
    const proxy: TunnelHandler = async (tunnel) => {
      const { value } = await tunnel.readable.getReader().read();
      requests.push(Buffer.from(value!).toString().split("\r\n")[0]!);
      await sendAll(tunnel, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nproxy\n");
    };
    await vm.serveProxy(proxy, NEVER);
    expect(await outputIn(vm, "curl -sS http://example.test/page")).toBe("proxy\n");
    const fetched = `import urllib.request as u; print(u.urlopen("http://example.test/py").read())`;
    expect(await outputIn(vm, `python3 -c '${fetched}'`)).toContain("proxy");
    expect(requests).toEqual([
      "GET http://example.test/page HTTP/1.1",
      "GET http://example.test/py HTTP/1.1",
    ]);
    const local = await runIn(vm, "curl -sS --max-time 5 http://localhost:7999/");
    expect(local.stderr).toContain("port 7999");
    await vm.serveProxy(echo, NEVER);
  });

  test("carry gtwall's message to the engine's name, and its refusal back", async () => {
    const posted: string[] = [];
    let status = "201 Created";
    const engine: TunnelHandler = async (tunnel) => {
      const reader = tunnel.readable.getReader();
      let text = "";
      while (!text.endsWith("}")) text += Buffer.from((await reader.read()).value!).toString();
      posted.push(text.split("\r\n")[0]!, text.split("\r\n\r\n")[1]!);
      await sendAll(tunnel, `HTTP/1.1 ${status}\r\n\r\nthe wall is closed`);
    };
    await vm.serveProxy(engine, NEVER);
    expect(await runIn(vm, `gtwall 'done: "x" 끝'`)).toEqual({ stdout: "", stderr: "", code: 0 });
    expect(posted).toEqual([
      "POST http://ignition.internal/townwall/post HTTP/1.1",
      JSON.stringify({ body: 'done: "x" 끝' }),
    ]);
    status = "403 Forbidden";
    expect(await runIn(vm, "gtwall x")).toMatchObject({
      code: 1,
      stderr: "gtwall: the engine refused the message with status 403: the wall is closed\n",
    });
    await vm.serveProxy(echo, NEVER);
  });

  test("without a proxy there are no variables, and gtwall says that there is no engine", async () => {
    const serving = new AbortController();
    await vm.serveProxy(echo, serving.signal);
    expect((await outputIn(vm, "env | grep -ic proxy")).trim()).toBe("8");
    serving.abort();
    await eventually("it stopped", 10_000, async () => (await runIn(vm, "gtwall x")).code === 3);
    expect((await runIn(vm, "env | grep -ic proxy")).stdout.trim()).toBe("0");
    await vm.serveProxy(echo, NEVER);
  });

  test("are reset by a guest that is told that it is a clone, which still listens", async () => {
    const tunnel = await vm.connectGuest(ECHO_PORT, NEVER);
    const reading = rejection<AgentError>(readAll(tunnel));
    await tellCloned(vm.agent, newCloneIdentity());
    expect(await reading).toMatchObject({ refusal: "reset" });
    expect(await outputIn(vm, python(ECHO_CLIENTS, 1, 1024))).toBe("1\n");
    await noneIsLeft();
  });

  test("go on through a checkpoint, are reset in the fork, and work there once it is told to listen", async () => {
    const tunnels: Tunnel[] = [];
    await vm.serveProxy((tunnel) => void tunnels.push(tunnel), NEVER);
    await inBackground(vm, HOLDER);
    await eventually("it connected", 20_000, () => tunnels.length === 1);
    const into = await vm.connectGuest(ECHO_PORT, NEVER);
    const fork = await vms.fork(vm);
    await eventually(
      "the fork's is reset",
      20_000,
      async () => (await stateIn(fork)) === "ConnectionResetError",
    );
    expect((await runIn(fork, "gtwall x")).code).toBe(3);
    await fork.serveProxy(echo, NEVER);
    expect(await outputIn(fork, python(ECHO_CLIENTS, 2, 1024))).toBe("2\n");
    expect(await stateIn(vm)).toBe("open");
    await sendAll(tunnels[0]!, "still here");
    await eventually("the parent's goes on", 10_000, async () => (await stateIn(vm)) === "read still here");
    const [, received] = await Promise.all([sendAll(into, "and back"), readAll(into)]);
    expect(Buffer.from(received).toString()).toBe("and back");
    await vm.serveProxy(echo, NEVER);
    await fork[Symbol.asyncDispose]();
  });

  test("end with their VM, for reader and writer", async () => {
    const short = await vms.claim();
    const outcomes: Promise<AgentError>[] = [];
    await short.serveProxy((tunnel) => {
      outcomes.push(rejection<AgentError>(readAll(tunnel)));
      outcomes.push(rejection<AgentError>(tunnel.writable.getWriter().closed));
    }, NEVER);
    await inBackground(short, HOLDER);
    await eventually("it connected", 20_000, () => outcomes.length === 2);
    await short[Symbol.asyncDispose]();
    for (const error of await Promise.all(outcomes)) expect(error.code).toBe("agent_lost");
  });
});
