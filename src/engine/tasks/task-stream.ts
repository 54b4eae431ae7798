import type { RunHandle } from "../../guest/run-handle.ts";
import type { TaskResult } from "./tasks.ts";

export const HEARTBEAT_MS = 15_000;
/** Frames beyond which a client that does not read is told nothing more until it does, but for the result */
const MOST_WAITING = 1000;

type Frame = { type: "progress"; text: string } | { type: "heartbeat" } | ({ type: "result" } & TaskResult);

/**
 * A task under way as one JSON object a line: what it prints as it appears, a heartbeat while it is silent, and its
 * result at last. Beyond what is sent of a run's output at once, only its last line of each second is told.
 * `onCancel` is called when nobody reads any more.
 */
export function taskStream(
  run: RunHandle,
  result: Promise<TaskResult>,
  onCancel: () => void,
  heartbeatMs = HEARTBEAT_MS,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const progress = new TaskProgress(run);
  let stop: () => void = () => undefined;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const send = (frame: Frame) => controller.enqueue(encoder.encode(`${JSON.stringify(frame)}\n`));
      const isBehind = () => (controller.desiredSize ?? 0) < -MOST_WAITING;
      const timer = setInterval(() => {
        if (!isBehind()) send({ type: "heartbeat" });
      }, heartbeatMs);
      const tell = () => {
        if (isBehind()) return;
        const text = progress.next();
        if (text === "") return;
        timer.refresh();
        send({ type: "progress", text });
      };
      const unsubscribe = run.onChange(tell);
      stop = () => {
        clearInterval(timer);
        unsubscribe();
      };
      tell();
      void settled(result).then((last) => {
        stop();
        if (progress.isCancelled) return;
        send({ type: "result", ...last });
        controller.close();
      });
    },
    cancel() {
      progress.isCancelled = true;
      stop();
      onCancel();
    },
  });
}

/** The status is sent already, so a failure becomes a result. */
async function settled(result: Promise<TaskResult>): Promise<TaskResult> {
  try {
    return await result;
  } catch (error) {
    return { output: "", error: error instanceof Error ? error.message : String(error) };
  }
}

/** What of a run's output was not told yet. */
class TaskProgress {
  isCancelled = false;
  readonly #run: RunHandle;
  readonly #decoder = new TextDecoder();
  #toldBytes = 0;
  #toldLine = "";

  constructor(run: RunHandle) {
    this.#run = run;
  }

  next(): string {
    const { stdout } = this.#run.heads();
    if (stdout.byteLength > this.#toldBytes) {
      const text = this.#decoder.decode(stdout.subarray(this.#toldBytes), { stream: true });
      this.#toldBytes = stdout.byteLength;
      return text;
    }
    const report = this.#run.latestReport;
    if (report === null || report.stdout_bytes <= this.#toldBytes || report.last_line === this.#toldLine)
      return "";
    this.#toldLine = report.last_line;
    return `${report.last_line}\n`;
  }
}
