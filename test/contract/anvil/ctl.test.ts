/** `ignition-mcp ctl` against a fake daemon. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { EXIT } from "../../../src/cli/exit-codes.ts";
import { runCommand } from "../../../src/cli/run-command.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";
import { CapturedOutput } from "../../unit/cli/captured-output.ts";
import { AGENT_TOKEN, FakeDaemon } from "./fake-daemon.ts";

const MAIN = join(import.meta.dir, "../../../src/main.ts");
const VARIABLES = ["EPHEMERA_CTL_URL", "EPHEMERA_CTL_TOKEN", "EPHEMERA_API_TOKEN"];
const before = Object.fromEntries(VARIABLES.map((name) => [name, process.env[name]]));
let daemon: FakeDaemon;

function clearVariables(): void {
  for (const name of VARIABLES) delete process.env[name];
}

beforeAll(clearVariables);
beforeEach(() => {
  daemon = new FakeDaemon();
  process.env["EPHEMERA_CTL_URL"] = daemon.url;
});
afterEach(async () => {
  clearVariables();
  await daemon[Symbol.asyncDispose]();
});
afterAll(() => {
  // An undefined one would be set to the text "undefined", for every file after this one
  for (const [name, value] of Object.entries(before)) if (value !== undefined) process.env[name] = value;
});

async function ctl(...args: string[]) {
  const output = new CapturedOutput();
  return { code: await runCommand(["ctl", ...args], output), out: output.stdoutText, err: output.stderrText };
}

const COMMANDS: [args: string[], request: string, body: unknown][] = [
  [["vm", "spawn"], "POST /vms", {}],
  [
    ["vm", "spawn", "--profile", "dev", "--tenant", "t", "--egress", "deny_all"],
    "POST /vms",
    { profile: "dev", tenant_id: "t", egress_policy: "deny_all" },
  ],
  [["vm", "ls"], "GET /vms", null],
  [["vm", "ls", "--stats"], "GET /vms?stats=true", null],
  [["vm", "rm", "vm-1"], "DELETE /vms/vm-1", null],
  [["vm", "health", "vm-1"], "GET /vms/vm-1/health", null],
  [["vm", "stop", "vm-1"], "POST /vms/vm-1/stop", null],
  [["vm", "stats", "vm-1"], "GET /vms/vm-1/stats", null],
  [["vm", "task", "vm-1", "echo", "hi"], "POST /vms/vm-1/tasks", { prompt: "echo hi" }],
  [["vm", "snapshot", "vm-1"], "POST /vms/vm-1/snapshot", { stop_after: false }],
  [
    ["vm", "snapshot", "vm-1", "--stop-after", "--type", "diff"],
    "POST /vms/vm-1/snapshot",
    { stop_after: true, type: "diff" },
  ],
  [["vm", "forward", "vm-1", "80"], "POST /vms/vm-1/forwards", { guest_port: 80 }],
  [
    ["vm", "forward", "vm-1", "80", "--host-port", "8080"],
    "POST /vms/vm-1/forwards",
    { guest_port: 80, host_port: 8080 },
  ],
  [["vm", "forwards", "vm-1"], "GET /vms/vm-1/forwards", null],
  [["vm", "unforward", "vm-1", "8080"], "DELETE /vms/vm-1/forwards/8080", null],
  [
    ["flock", "create", "--task", "ship", "--roles", "a,b"],
    "POST /flocks",
    { task: "ship", roles: ["a", "b"] },
  ],
  [["flock", "ls"], "GET /flocks", null],
  [["flock", "get", "f"], "GET /flocks/f", null],
  [["flock", "rm", "f"], "DELETE /flocks/f", null],
  [
    ["flock", "post", "f", "--agent", "a-1", "--body", "hi"],
    "POST /flocks/f/post",
    { agent_id: "a-1", body: "hi" },
  ],
  [["flock", "wall", "f", "--history"], "GET /flocks/f/wall/history", null],
  [["flock", "restart", "f", "a-1"], "POST /flocks/f/agents/a-1/restart", null],
  [["flock", "add-agent", "f", "--role", "a"], "POST /flocks/f/agents", { role: "a" }],
  [["flock", "rm-agent", "f", "a-1"], "DELETE /flocks/f/agents/a-1", null],
  [
    ["flock", "set-role", "f", "a-1", "--role", "b", "--profile", "p"],
    "PATCH /flocks/f/agents/a-1",
    { role: "b", profile: "p" },
  ],
  [["flock", "pause", "f"], "POST /flocks/f/pause", null],
  [["flock", "resume", "f"], "POST /flocks/f/resume", null],
  [["flock", "broadcast", "f", "--body", "go"], "POST /flocks/f/broadcast", { body: "go" }],
  [["snapshot", "ls"], "GET /snapshots", null],
  [["snapshot", "restore", "s"], "POST /snapshots/s/restore", {}],
  [["snapshot", "rm", "s"], "DELETE /snapshots/s", null],
  [["audit"], "GET /audit", null],
  [
    ["audit", "--limit", "5", "--client", "a b", "--status", "404", "--method", "GET"],
    "GET /audit?limit=5&client=a%20b&status=404&method=GET",
    null,
  ],
  [["metrics"], "GET /metrics", null],
  [["metrics", "--json"], "GET /metrics/vms", null],
];

/** The least that each command can take for its answer. */
function fittingAnswer(method: string, path: string): Response {
  const route = `${method} ${path}`;
  if (route === "GET /metrics") return new Response("# HELP a b\n");
  if (/^GET .*\/(vms|flocks|snapshots|audit|forwards|history)(\?|$)/.test(route)) return Response.json([]);
  return Response.json({ output: "", body: "", agents: [], results: {} });
}

test.each(COMMANDS)("%j asks %s", async (args, request, body) => {
  daemon.answer = ({ method, path }) => fittingAnswer(method, path);
  expect(await ctl(...args)).toMatchObject({ code: EXIT.ok, err: "" });
  expect(daemon.lines).toEqual([request]);
  expect(daemon.last.body === "" ? null : JSON.parse(daemon.last.body)).toEqual(body);
  expect(daemon.last.authorization).toBeNull();
});

describe("what is printed", () => {
  test("is a table for a list, and a sentence for an empty one", async () => {
    expect((await ctl("vm", "ls")).out).toBe("VM    PROFILE  TENANT  EGRESS  STATUS  CREATED\nvm-1  shell\n");
    daemon.answer = () => Response.json([]);
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
    daemon.answer = () => new Response(`${text}\n`);
    expect((await ctl("vm", "health", "vm-1", "--json")).out).toBe(`${text}\n`);
  });

  test("is a row for each agent a broadcast reached", async () => {
    const results = { "a-1": { status: "ok", output: "one\ntwo\n" }, "a-2": { status: "busy" } };
    daemon.answer = () => Response.json({ flock_id: "f", agents: 2, sent: 1, results });
    expect((await ctl("flock", "broadcast", "f", "--body", "x")).out).toBe(
      "flock_id  f\nagents    2\nsent      1\n\nAGENT  STATUS  OUTPUT   ERROR\na-1    ok      one two\na-2    busy\n",
    );
  });

  test("cannot steer the terminal or pass for another message, whatever an agent writes", async () => {
    const body = "\u001b[2Jhello\u0007\n2026-01-01T00:00:00Z boss: obey";
    daemon.answer = () => Response.json([{ timestamp: "T", agent_id: "a-1", body, task: body }]);
    expect((await ctl("flock", "wall", "f", "--history")).out).toBe(
      "T a-1: \ufffd[2Jhello\ufffd\n    2026-01-01T00:00:00Z boss: obey\n",
    );
    expect((await ctl("flock", "ls")).out).toContain("\ufffd[2Jhello\ufffd 2026-01-01T00:00:00Z boss: obey");
  });

  test("is the text of the metrics", async () => {
    daemon.answer = () => new Response("# HELP a b\na 1\n");
    expect((await ctl("metrics")).out).toBe("# HELP a b\na 1\n");
  });
});

test.each([[["wall", "f"]], [["wall", "f", "--json"]]])(
  "flock %j follows the wall until its end",
  async (args) => {
    const messages = [1, 2].map((seq) => ({ seq, timestamp: "T", agent_id: "a-1", body: `line ${seq}` }));
    daemon.answer = () => {
      const events = messages.map((message) => `: beat\n\ndata: ${JSON.stringify(message)}\n\n`);
      return new Response(events.join(""), { headers: { "content-type": "text/event-stream" } });
    };
    const expected = args.includes("--json")
      ? messages.map((message) => `${JSON.stringify(message)}\n`).join("")
      : "T a-1: line 1\nT a-1: line 2\n";
    expect(await ctl("flock", ...args)).toEqual({ code: EXIT.ok, out: expected, err: "" });
    expect(daemon.lines).toEqual(["GET /flocks/f/wall"]);
  },
);

describe("a token", () => {
  const tokenSent = async (...args: string[]) => {
    await ctl("vm", "ls", ...args);
    return daemon.last.authorization;
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

const SHOWN = COMMANDS.filter(([args]) => !args.includes("--json"));

describe.each([
  ["an object of something else", "[{}]", '{"hello":"not a list"}'],
  ["a page", "<!doctype html><p>It works!", "<!doctype html><p>It works!"],
])("%s instead of the documented answer", (_name, insteadOfRecord, insteadOfList) => {
  test.each(SHOWN)("is not taken for one by %j", async (args, request) => {
    const fitting = fittingAnswer(...(request.split(" ") as [string, string]));
    const isRecord = (await fitting.text()).startsWith("{");
    daemon.answer = () => new Response(isRecord ? insteadOfRecord : insteadOfList);
    const err = `ignition-mcp: ${daemon.url} answered ${request}, but not as documented. Check that EPHEMERA_CTL_URL leads to an ignition-mcp daemon.\n`;
    expect(await ctl(...args)).toEqual({ code: EXIT.failed, out: "", err });
    expect(await ctl(...args, "--json")).toMatchObject({ code: EXIT.failed, out: "" });
  });

  test("is not taken for a wall to follow", async () => {
    daemon.answer = () => new Response(insteadOfList);
    const { code, err } = await ctl("flock", "wall", "f");
    expect(code).toBe(EXIT.failed);
    expect(err).toContain("answered GET /flocks/f/wall, but not as documented");
  });
});

test("null is an empty list, as some daemons write it", async () => {
  daemon.answer = () => Response.json(null);
  expect((await ctl("flock", "ls")).out).toBe("No flocks.\n");
});

test("what a task is given may look like options after a --", async () => {
  expect(await ctl("vm", "task", "vm-1", "--", "ls", "-la")).toMatchObject({ code: EXIT.ok });
  expect(JSON.parse(daemon.last.body)).toEqual({ prompt: "ls -la" });
});

test("a reader that leaves early ends it with 0 and without a word", async () => {
  daemon.answer = () => Response.json({ output: "x".repeat(1_048_576) });
  const child = Bun.spawn([process.execPath, MAIN, "ctl", "vm", "task", "vm-1", "x"], {
    env: { PATH: process.env["PATH"]!, EPHEMERA_CTL_URL: daemon.url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const reader = child.stdout.getReader();
  await reader.read();
  await reader.cancel();
  expect([await child.exited, await child.stderr.text()]).toEqual([EXIT.ok, ""]);
});

test("an answer of 300 and more ends with 1 and is told in one line", async () => {
  daemon.answer = () => new Response("VM not found\n", { status: 404 });
  const line = "ignition-mcp: DELETE /vms/vm-9 → HTTP 404: VM not found\n";
  expect(await ctl("vm", "rm", "vm-9")).toEqual({ code: EXIT.failed, out: "", err: line });
  expect(await ctl("vm", "rm", "vm-9", "--json")).toEqual({ code: EXIT.failed, out: "", err: line });
  daemon.answer = () => new Response("\u001b[2Jgone\u009b\n", { status: 410 });
  expect((await ctl("vm", "rm", "vm-9")).err).toEndWith("HTTP 410: \ufffd[2Jgone\ufffd\n");
  daemon.answer = () => new Response("VM not found\n", { status: 404 });
  expect(await ctl("flock", "wall", "f")).toMatchObject({
    code: EXIT.failed,
    err: "ignition-mcp: GET /flocks/f/wall → HTTP 404: VM not found\n",
  });
});

test("a daemon that is not there ends with 1 and the next step", async () => {
  const { url } = daemon;
  await daemon[Symbol.asyncDispose]();
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
  expect(daemon.lines).toEqual([]);
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
  expect(daemon.lines).toEqual([]);
});
