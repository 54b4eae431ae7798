/** `ignition-mcp ctl` against a fake daemon. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { EXIT } from "../../../src/cli/exit-codes.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";
import { COMMANDS, fittingAnswer } from "./ctl-table.ts";
import { AGENT_TOKEN, FakeDaemon } from "./fake-daemon.ts";
import { useCtl } from "./use-ctl.ts";

const MAIN = join(import.meta.dir, "../../../src/main.ts");
const fixture = useCtl();
const { ctl } = fixture;

test.each(COMMANDS)("%j asks %s", async (args, request, body) => {
  fixture.daemon.answer = ({ method, path }) => fittingAnswer(method, path);
  expect(await ctl(...args)).toMatchObject({ code: EXIT.ok, err: "" });
  expect(fixture.daemon.lines).toEqual([request]);
  expect(fixture.daemon.last.body === "" ? null : JSON.parse(fixture.daemon.last.body)).toEqual(body);
  expect(fixture.daemon.last.authorization).toBeNull();
});

describe("what is printed", () => {
  test("is a table for a list, and a sentence for an empty one", async () => {
    expect((await ctl("vm", "ls")).out).toBe("VM    PROFILE  TENANT  EGRESS  STATUS  CREATED\nvm-1  shell\n");
    fixture.daemon.answer = () => Response.json([]);
    expect((await ctl("snapshot", "ls")).out).toBe("No snapshots.\n");
  });

  test("is a line for each member of one thing, and never an agent_token", async () => {
    const { out } = await ctl("vm", "spawn");
    expect(out).toContain("vm_id      vm-1\n");
    expect(out).not.toContain("token");
    expect((await ctl("vm", "spawn", "--json")).out).not.toContain(AGENT_TOKEN);
  });

  test("is the output of a task alone", async () => {
    expect((await ctl("vm", "task", "vm-1", "x")).out).toBe("anvil-smoke-ok\n");
  });

  test("is a flock with its agents, and a wall as its lines", async () => {
    expect((await ctl("flock", "get", "f")).out).toEndWith(
      "\n\nAGENT     ROLE    VM    STATUS\nworker-1  worker  vm-9  ready\n",
    );
    expect((await ctl("flock", "wall", "f", "--history")).out).toBe("2026-07-11T00:00:00Z worker-1: hello\n");
  });

  test("is the daemon's answer as it came with --json", async () => {
    const text = '{"status":"idle",  "new_member":[1]}';
    fixture.daemon.answer = () => new Response(`${text}\n`);
    expect((await ctl("vm", "health", "vm-1", "--json")).out).toBe(`${text}\n`);
  });

  test("is a row for each agent a broadcast reached", async () => {
    const results = { "a-1": { status: "ok", output: "one\ntwo\n" }, "a-2": { status: "busy" } };
    fixture.daemon.answer = () => Response.json({ flock_id: "f", agents: 2, sent: 1, results });
    expect((await ctl("flock", "broadcast", "f", "--body", "x")).out).toBe(
      "flock_id  f\nagents    2\nsent      1\n\nAGENT  STATUS  OUTPUT   ERROR\na-1    ok      one two\na-2    busy\n",
    );
  });

  test("cannot steer the terminal or pass for another message, whatever an agent writes", async () => {
    const body = "\u001b[2Jhello\u0007\n2026-01-01T00:00:00Z boss: obey";
    fixture.daemon.answer = () => Response.json([{ timestamp: "T", agent_id: "a-1", body, task: body }]);
    expect((await ctl("flock", "wall", "f", "--history")).out).toBe(
      "T a-1: \ufffd[2Jhello\ufffd\n    2026-01-01T00:00:00Z boss: obey\n",
    );
    expect((await ctl("flock", "ls")).out).toContain("\ufffd[2Jhello\ufffd 2026-01-01T00:00:00Z boss: obey");
  });

  test("is the text of the metrics", async () => {
    fixture.daemon.answer = () => new Response("# HELP a b\na 1\n");
    expect((await ctl("metrics")).out).toBe("# HELP a b\na 1\n");
  });
});

test.each([[["wall", "f"]], [["wall", "f", "--json"]]])(
  "flock %j follows the wall until its end",
  async (args) => {
    const messages = [1, 2].map((seq) => ({ seq, timestamp: "T", agent_id: "a-1", body: `line ${seq}` }));
    fixture.daemon.answer = () => {
      const events = messages.map((message) => `: beat\n\ndata: ${JSON.stringify(message)}\n\n`);
      return new Response(events.join(""), { headers: { "content-type": "text/event-stream" } });
    };
    const expected = args.includes("--json")
      ? messages.map((message) => `${JSON.stringify(message)}\n`).join("")
      : "T a-1: line 1\nT a-1: line 2\n";
    expect(await ctl("flock", ...args)).toEqual({ code: EXIT.ok, out: expected, err: "" });
    expect(fixture.daemon.lines).toEqual(["GET /flocks/f/wall"]);
  },
);

describe("a token", () => {
  const tokenSent = async (...args: string[]) => {
    await ctl("vm", "ls", ...args);
    return fixture.daemon.last.authorization;
  };

  test("is the option's, else that of EPHEMERA_CTL_TOKEN, else that of EPHEMERA_API_TOKEN", async () => {
    process.env["EPHEMERA_API_TOKEN"] = "third";
    expect(await tokenSent()).toBe("Bearer third");
    process.env["EPHEMERA_CTL_TOKEN"] = "second";
    expect(await tokenSent()).toBe("Bearer second");
    expect(await tokenSent("--token", "first")).toBe("Bearer first");
  });

  test("that no header can carry is refused without being shown", async () => {
    const { code, err } = await ctl("vm", "ls", "--token", "se cret");
    expect(code).toBe(EXIT.badConfig);
    expect(err).not.toContain("cret");
  });
});

test("null is an empty list, as some daemons write it", async () => {
  fixture.daemon.answer = () => Response.json(null);
  expect((await ctl("flock", "ls")).out).toBe("No flocks.\n");
});

test("what a task is given may look like options after a --", async () => {
  expect(await ctl("vm", "task", "vm-1", "--", "ls", "-la")).toMatchObject({ code: EXIT.ok });
  expect(JSON.parse(fixture.daemon.last.body)).toEqual({ prompt: "ls -la" });
});

test("a reader that leaves early ends it with 0 and without a word", async () => {
  fixture.daemon.answer = () => Response.json({ output: "x".repeat(1_048_576) });
  const child = Bun.spawn([process.execPath, MAIN, "ctl", "vm", "task", "vm-1", "x"], {
    env: { PATH: process.env["PATH"]!, EPHEMERA_CTL_URL: fixture.daemon.url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const reader = child.stdout.getReader();
  await reader.read();
  await reader.cancel();
  expect([await child.exited, await child.stderr.text()]).toEqual([EXIT.ok, ""]);
});

test("an answer of 300 and more ends with 1 and is told in one line", async () => {
  fixture.daemon.answer = () => new Response("VM not found\n", { status: 404 });
  const line = "ignition-mcp: DELETE /vms/vm-9 → HTTP 404: VM not found\n";
  expect(await ctl("vm", "rm", "vm-9")).toEqual({ code: EXIT.failed, out: "", err: line });
  expect(await ctl("vm", "rm", "vm-9", "--json")).toEqual({ code: EXIT.failed, out: "", err: line });
  fixture.daemon.answer = () => new Response("\u001b[2Jgone\u009b\n", { status: 410 });
  expect((await ctl("vm", "rm", "vm-9")).err).toEndWith("HTTP 410: \ufffd[2Jgone\ufffd\n");
  fixture.daemon.answer = () => new Response("VM not found\n", { status: 404 });
  expect(await ctl("flock", "wall", "f")).toMatchObject({
    code: EXIT.failed,
    err: "ignition-mcp: GET /flocks/f/wall → HTTP 404: VM not found\n",
  });
});

test("a daemon that is not there ends with 1 and the next step", async () => {
  const { url } = fixture.daemon;
  await fixture.daemon[Symbol.asyncDispose]();
  expect(await ctl("vm", "ls")).toEqual({
    code: EXIT.failed,
    out: "",
    err: `ignition-mcp: send daemon request: GET /vms to ${url}: nothing listens there. Start the daemon: ignition-mcp daemon\n`,
  });
});

test.each([
  [[], "Usage: ignition-mcp ctl"],
  [["vm"], "Usage: ignition-mcp ctl vm"],
  [["vn", "ls"], "Did you mean vm?"],
  [["vm", "rm"], "missing required argument 'id'"],
  [["vm", "rm", ".."], "It is no id."],
  [["vm", "forward", "vm-1", "65536"], "It must be a port from 1 to 65535."],
  [["vm", "unforward", "vm-1", "x"], "It must be a port from 1 to 65535."],
  [["vm", "task", "vm-1"], "missing required argument 'prompt'"],
  [["flock", "create", "--task", "x"], "required option '--roles <a,b>' not specified"],
  [["audit", "--limit", "1001"], "It must be a whole number from 1 to 1000."],
])("%j makes no sense and ends with 2, and nothing is asked", async (args, message) => {
  const { code, out, err } = await ctl(...args);
  expect({ code, out }).toEqual({ code: EXIT.usage, out: "" });
  expect(err).toContain(message);
  expect(fixture.daemon.lines).toEqual([]);
});

test.each(["ftp://x", "unix:relative", "http://"])("EPHEMERA_CTL_URL=%s is refused", async (url) => {
  process.env["EPHEMERA_CTL_URL"] = url;
  const { code, err } = await ctl("vm", "ls");
  expect(code).toBe(EXIT.badConfig);
  expect(err).toContain("EPHEMERA_CTL_URL");
});

test.each(["unix:", "unix://"])("a daemon behind %s… is reached by its socket", async (scheme) => {
  using directory = new TemporaryDirectory();
  const socketPath = directory.join("api.sock");
  await using local = new FakeDaemon({ unix: socketPath });
  process.env["EPHEMERA_CTL_URL"] = scheme + socketPath;
  expect(await ctl("vm", "rm", "vm-1")).toMatchObject({ code: EXIT.ok });
  expect(local.lines).toEqual(["DELETE /vms/vm-1"]);
  expect(fixture.daemon.lines).toEqual([]);
});
