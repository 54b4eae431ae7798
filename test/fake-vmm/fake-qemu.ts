/**
 * A program in place of QEMU: speaks QMP on the VM directory's socket and serves a fake agent there. A run's command
 * tells it what to do. Usage: bun fake-qemu.ts VM_DIRECTORY [OPTIONS as JSON]
 */
import { writeSync } from "node:fs";
import { join } from "node:path";
import type { Socket } from "bun";
import { AGENT_SOCKET, CONSOLE_SOCKET, QMP_SOCKET } from "../../src/vm/machine-spec.ts";
import type { AgentFault } from "./agent-fault.ts";
import { FakeAgent } from "./fake-agent.ts";
import type { FakeRun } from "./fake-run.ts";

export interface FakeQemuOptions {
  /** What it says on QMP instead of the greeting */
  greeting?: "nothing" | "garbage" | "an_array" | "an_endless_line";
  /** Writes this to stderr and exits with status 1 at once */
  complaint?: string;
  /** How an incoming migration ends */
  migration?: "completed" | "failed" | "exits" | "never_ends";
  /** QMP commands that get no answer */
  unanswered?: string[];
  fault?: AgentFault;
  /** When a `slow_ok` comes after all, in `ms` */
  okAfterMs?: number;
  build?: string;
  refusesProbe?: boolean;
}

const [vmDir = "", json = "{}"] = process.argv.slice(2);
const options = JSON.parse(json) as FakeQemuOptions;
if (options.complaint !== undefined) {
  console.error(options.complaint);
  process.exit(1);
}

const PANIC = "[    1.0] Kernel panic - not syncing: Attempted to kill init!\r\n";
const qmpHistory: string[] = [];
const agent = new FakeAgent({
  path: join(vmDir, AGENT_SOCKET),
  onRun: (run) => act(run),
  ...(options.fault && { fault: options.fault }),
  ...(options.build !== undefined && { build: options.build }),
  ...(options.refusesProbe && { refusesProbe: true }),
});
const consoleSocket = await connect(CONSOLE_SOCKET, () => undefined);
const qmpSocket = await connect(QMP_SOCKET, takeLines);
greet();
if (options.okAfterMs !== undefined) await answerConnectAfter(options.okAfterMs);

async function connect(name: string, onText: (text: string) => void): Promise<Socket<undefined>> {
  return await Bun.connect<undefined>({
    unix: join(vmDir, name),
    socket: { data: (_, bytes) => onText(bytes.toString()) },
  });
}

async function answerConnectAfter(delayMs: number): Promise<void> {
  while (agent.connectLine === null) await Bun.sleep(1);
  await Bun.sleep(delayMs);
  agent.answerConnect();
}

function greet(): void {
  if (options.greeting === undefined) say({ QMP: { version: {}, capabilities: [] } });
  else if (options.greeting === "garbage") qmpSocket.write("}{\xff\r\n");
  else if (options.greeting === "an_array") qmpSocket.write('[{"QMP":{}}]\r\nnull\r\n');
  else if (options.greeting === "an_endless_line") void floodLine();
}

async function floodLine(): Promise<void> {
  for (;;) {
    qmpSocket.write("x".repeat(65_536));
    await Bun.sleep(1);
  }
}

function say(message: object): void {
  qmpSocket.write(`${JSON.stringify(message)}\r\n`);
}

function takeLines(text: string): void {
  for (const line of text.split("\n").filter((each) => each !== "")) obey(JSON.parse(line));
}

function obey({ execute, id }: { execute: string; id: number }): void {
  qmpHistory.push(execute);
  if (options.unanswered?.includes(execute)) return;
  say({ return: {}, id });
  if (execute !== "migrate-incoming" || options.migration === "never_ends") return;
  if (options.migration === "exits") process.exit(1);
  say({ event: "MIGRATION", data: { status: options.migration ?? "completed" } });
}

const ACTIONS: Record<string, (run: FakeRun, argument: string | undefined) => unknown> = {
  ":": (run) => run.exit(),
  echo: (run, text = "") => {
    run.stdout(text);
    run.exit({ stdout_bytes: text.length, stdout_head_bytes: text.length });
  },
  /** The next request meets this fault */
  arm: (run, fault) => {
    agent.fault = fault as AgentFault;
    run.exit();
  },
  history: tellHistory,
  hang: () => undefined,
  "vmm-exit": (_run, status) => process.exit(Number(status)),
  panic: () => {
    consoleSocket.write(PANIC);
    stop("guest-reset");
  },
  /** As a program in the guest can */
  "write-panic": (run) => {
    consoleSocket.write(PANIC);
    run.exit();
  },
  /** Says more than is kept, with something in it that steers a terminal, and exits at once */
  complain: () => {
    consoleSocket.write(PANIC);
    writeSync(2, `${"x".repeat(5000)}\nfatal: \x1b[`);
    process.exit(3);
  },
  poweroff: () => {
    consoleSocket.write("[    2.0] reboot: Power down\n");
    stop("guest-shutdown");
  },
  drop: () => agent.dropConnections(),
  garbage: (run) => run.refuse("not a code"),
};

function act(run: FakeRun): void {
  const [verb = "", argument] = run.command.split(" ");
  ACTIONS[verb]!(run, argument);
}

/** What came on QMP and from the host, in order */
function tellHistory(run: FakeRun): void {
  const text = JSON.stringify({ qmp: qmpHistory, received: agent.received.map((frame) => frame.type) });
  run.stdout(text);
  run.exit({ stdout_bytes: text.length, stdout_head_bytes: text.length });
}

/** The exit comes later, so that what was just said gets there. */
function stop(reason: string): void {
  say({ event: "SHUTDOWN", data: { guest: true, reason } });
  setTimeout(() => process.exit(0), 20);
}
