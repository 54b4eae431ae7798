import { expect, test } from "bun:test";
import { taskStream } from "../../../src/engine/tasks/task-stream.ts";
import type { TaskResult } from "../../../src/engine/tasks/tasks.ts";
import type { ReportMessage } from "../../../src/guest/agent-protocol.ts";
import type { RunHandle } from "../../../src/guest/run-handle.ts";

/** A run whose output the test decides. */
class ScriptedRun {
  stdout = new Uint8Array();
  latestReport: ReportMessage | null = null;
  listener: () => void = () => undefined;
  readonly handle = {
    heads: () => ({ stdout: this.stdout, stderr: new Uint8Array() }),
    onChange: (listener: () => void) => {
      this.listener = listener;
      return () => {
        this.listener = () => undefined;
      };
    },
  } as unknown as RunHandle;

  constructor() {
    Object.defineProperty(this.handle, "latestReport", { get: () => this.latestReport });
  }

  print(bytes: string | Uint8Array): void {
    this.stdout = Buffer.concat([this.stdout, typeof bytes === "string" ? Buffer.from(bytes) : bytes]);
    this.listener();
  }

  report(stdoutBytes: number, lastLine: string): void {
    this.latestReport = { stdout_bytes: stdoutBytes, last_line: lastLine } as ReportMessage;
    this.listener();
  }
}

async function framesOf(stream: ReadableStream<Uint8Array>): Promise<unknown[]> {
  const text = await new Response(stream).text();
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

test("a character that arrives in two pieces is told whole; beyond the head only last lines are", async () => {
  const run = new ScriptedRun();
  const { promise, resolve } = Promise.withResolvers<TaskResult>();
  const frames = framesOf(taskStream(run.handle, promise, () => undefined));
  const euro = Buffer.from("€");
  run.print(euro.subarray(0, 1));
  run.print(euro.subarray(1));
  run.report(3, "€");
  run.report(900, "far on");
  run.report(901, "far on");
  resolve({ output: "€" });
  expect(await frames).toEqual([
    { type: "progress", text: "€" },
    { type: "progress", text: "far on\n" },
    { type: "result", output: "€" },
  ]);
});

test("a client that does not read is told no more than it may leave waiting, and the result", async () => {
  const run = new ScriptedRun();
  const { promise, resolve } = Promise.withResolvers<TaskResult>();
  const stream = taskStream(run.handle, promise, () => undefined);
  for (let line = 1; line <= 5000; line++) run.report(line, `line ${line}`);
  resolve({ output: "all" });
  const frames = await framesOf(stream);
  expect(frames.length).toBeLessThan(1100);
  expect(frames.at(-1)).toEqual({ type: "result", output: "all" });
});

test("a silent task has a heartbeat, and a failure is its result", async () => {
  const { promise, reject } = Promise.withResolvers<TaskResult>();
  const reader = taskStream(new ScriptedRun().handle, promise, () => undefined, 5).getReader();
  const frame = async () => JSON.parse(new TextDecoder().decode((await reader.read()).value));
  expect(await frame()).toEqual({ type: "heartbeat" });
  reject(new Error("agent unreachable: gone"));
  let last = await frame();
  while (last.type === "heartbeat") last = await frame();
  expect(last).toEqual({ type: "result", output: "", error: "agent unreachable: gone" });
  expect((await reader.read()).done).toBe(true);
});

test("a reader that leaves is told of once, and what comes later goes nowhere", async () => {
  const run = new ScriptedRun();
  let cancelled = 0;
  const { promise, resolve } = Promise.withResolvers<TaskResult>();
  await taskStream(run.handle, promise, () => cancelled++).cancel();
  run.print("late");
  resolve({ output: "late" });
  await promise;
  expect(cancelled).toBe(1);
});
