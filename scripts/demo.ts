/** The tour behind `scripts/demo`: every tool once, over stdio, with the official client. Any wrong answer ends it. */
import { createHash } from "node:crypto";
import { join, resolve } from "node:path";
import { stillAlive, vmsOf } from "../test/support/leftovers.ts";
import { StdioClient } from "../test/support/stdio-client.ts";
import { check, DemoStage } from "./demo-stage.ts";

const ROOT_PATH = resolve(import.meta.dir, "..");
const EXECUTABLE_PATH = join(ROOT_PATH, "dist/ignition-mcp");
const STORE_PATH = process.env["IGN_MCP_STORE"] ?? join(ROOT_PATH, ".cache/store");
const MIB = 1_048_576;

/** Our own settings and what QEMU and bubblewrap are found by; nothing else of this shell. */
function serverEnvironment(): Record<string, string> {
  const passed = Object.entries(process.env).filter(([name]) =>
    /^(IGN_MCP_|PATH$|HOME$|XDG_|TMPDIR$)/.test(name),
  );
  return { ...(Object.fromEntries(passed) as Record<string, string>), IGN_MCP_STORE: STORE_PATH };
}

/** Makes the warm base, unless a fitting one is in the store. Returns the time taken, in `ms`. */
async function prepareBase(env: Record<string, string>): Promise<number> {
  console.log("== The warm base: built once, kept in the store");
  const startedMs = performance.now();
  const child = Bun.spawn([EXECUTABLE_PATH, "base", "build"], {
    env,
    stdio: ["ignore", "inherit", "inherit"],
    timeout: 300_000,
  });
  check((await child.exited) === 0, "the base could not be built; the lines above say why");
  return performance.now() - startedMs;
}

async function showTools(stage: DemoStage, id: string): Promise<void> {
  stage.title("A whole Linux computer of its own");
  check((await stage.run(id, "uname -a")).includes("Linux"), "uname does not say Linux");
  check((await stage.run(id, "python3 --version")).startsWith("Python 3"), "no python3");
  check((await stage.run(id, "git --version")).startsWith("git version"), "no git");
  check((await stage.run(id, "gcc --version | head -n 1")).includes("gcc"), "no gcc");
}

async function showPersistence(stage: DemoStage, id: string): Promise<void> {
  stage.title("Files last from one run to the next; working directory and input are given per run");
  await stage.run(id, "echo kept > note.txt");
  check((await stage.run(id, "cat note.txt")) === "kept\n", "the file was not kept");
  check((await stage.run(id, "pwd", { cwd: "/usr/share" })) === "/usr/share\n", "cwd was not used");
  check((await stage.run(id, "tr a-z A-Z", { stdin: "hello\n" })) === "HELLO\n", "stdin did not arrive");
}

async function showTimeout(stage: DemoStage, id: string): Promise<void> {
  stage.title("A timeout keeps what was printed, and the session");
  const command = "echo before; sleep 60; echo after";
  const { fields } = await stage.call("run", { args: { session_id: id, command, timeout_s: 2 } });
  check(fields["timed_out"] === true && fields["exit_code"] === 124, "the run did not time out");
  check(fields["stdout"] === "before\n", "the output before the timeout is missing");
  check((await stage.run(id, "echo still here")) === "still here\n", "the session is gone after a timeout");
}

async function showWriteFile(stage: DemoStage, id: string): Promise<void> {
  stage.title("Files arrive byte for byte");
  const everyByte = Buffer.from(Array.from({ length: 256 }, (_, value) => value));
  const path = "/root/data/every-byte.bin";
  const args = { session_id: id, path, content_base64: everyByte.toString("base64") };
  await stage.call("write_file", { args });
  const expected = createHash("sha256").update(everyByte).digest("hex");
  const seen = (await stage.run(id, `sha256sum ${path}`)).split(" ")[0];
  check(seen === expected, `the guest sees ${seen}, the host sent ${expected}`);
  console.log(`   host and guest agree on sha256 ${expected}`);
}

async function showIsolation(stage: DemoStage, id: string): Promise<string> {
  stage.title("A second session shares nothing with the first");
  const other = await stage.timed("open (from the pool)", () => stage.open());
  check(
    (await stage.run(other, "test ! -e note.txt && echo absent")) === "absent\n",
    "the sessions share files",
  );
  await stage.run(other, "echo mine > other.txt");
  check(
    (await stage.run(id, "test ! -e other.txt && echo absent")) === "absent\n",
    "the sessions share files",
  );
  return other;
}

async function showResetAndClose(stage: DemoStage, id: string, other: string): Promise<void> {
  stage.title("reset gives the same session a fresh computer");
  await stage.timed("reset", () => stage.call("reset", { args: { session_id: id } }));
  check(
    (await stage.run(id, "test ! -e note.txt && echo absent")) === "absent\n",
    "the file survived a reset",
  );
  stage.title("A closed or unknown id is an error that names it");
  await stage.call("close", { args: { session_id: other } });
  await stage.call("run", { args: { session_id: other, command: "true" }, errorNames: other });
  await stage.call("run", { args: { session_id: "no-such-id", command: "true" }, errorNames: "no-such-id" });
}

async function measure(stage: DemoStage, id: string): Promise<void> {
  stage.title("Timings");
  const runs: number[] = [];
  for (let round = 0; round < 11; round++) {
    const startedMs = performance.now();
    await stage.client.callOk("run", { session_id: id, command: "true" });
    runs.push(performance.now() - startedMs);
  }
  stage.timings.push(["run true (median of 11)", runs.sort((a, b) => a - b)[5]!]);
  const content = Buffer.alloc(MIB, 7).toString("base64");
  const args = { session_id: id, path: "/root/mib.bin", content_base64: content };
  await stage.timed("write_file 1 MiB", () => stage.client.callOk("write_file", args));
  for (const [label, ms] of stage.timings)
    console.log(`   ${label.padEnd(26)} ${ms.toFixed(0).padStart(7)} ms`);
}

async function tour(stage: DemoStage): Promise<void> {
  stage.title("Open a session");
  const id = await stage.timed("open (first, no pool yet)", () => stage.open());
  await showTools(stage, id);
  await showPersistence(stage, id);
  await showTimeout(stage, id);
  await showWriteFile(stage, id);
  const other = await showIsolation(stage, id);
  await showResetAndClose(stage, id, other);
  await measure(stage, id);
}

async function main(): Promise<void> {
  const env = serverEnvironment();
  const baseMs = await prepareBase(env);
  const client = await StdioClient.start({ command: EXECUTABLE_PATH, env });
  let vms = vmsOf(client.pid);
  try {
    await using stage = new DemoStage(client);
    stage.timings.push(["base build, or check", baseMs]);
    await tour(stage);
    vms = vmsOf(client.pid);
    check(vms.length > 0, "no VM process was found below the server");
  } catch (error) {
    if (client.stderr !== "") console.error(`\nThe server's own messages:\n${client.stderr}`);
    throw error;
  }
  check(stillAlive(vms).length === 0, "a VM outlived the server");
  console.log(`\n== The client left: the server ended, and its ${vms.length} VM processes with it`);
  const config = { mcpServers: { ignition: { command: EXECUTABLE_PATH } } };
  console.log(`\nEvery answer was right. To use it, put this into your MCP client's configuration:\n`);
  console.log(JSON.stringify(config, null, 2));
}

try {
  await main();
} catch (error) {
  console.error(`\nDEMO FAILED: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
