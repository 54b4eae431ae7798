import { AgentError } from "../../../src/guest/agent-error.ts";
import type { ReportMessage } from "../../../src/guest/agent-protocol.ts";
import type { CommandEnd } from "../../../src/guest/output-capture.ts";
import type { RunCommand, RunHandle } from "../../../src/guest/run-handle.ts";
import type { FileContent, GetRange } from "../../../src/guest/transfer-file.ts";
import type { SessionVm, TakenCheckpoint, VmSource } from "../../../src/session/vm-source.ts";
import type { VmDeath } from "../../../src/vm/vm-death.ts";
import { vmTraces } from "../../../src/vm/vm-traces.ts";
import { SUCCESS } from "../../fake-vmm/fake-run.ts";

/** How a run ended, with its output as text */
export function commandEnd(exit: Partial<CommandEnd["exit"]> = {}, stdout = "", stderr = ""): CommandEnd {
  const captured = (text: string) => {
    const head = new TextEncoder().encode(text);
    return { head, tail: new Uint8Array(0), totalBytes: head.byteLength, path: null, isPathWhole: false };
  };
  return { exit: { ...SUCCESS, ...exit }, stdout: captured(stdout), stderr: captured(stderr) };
}

/** A run whose output, reports and end a test decides. */
export class FakeRunHandle implements RunHandle {
  readonly end = Promise.withResolvers<CommandEnd>();
  readonly ended = this.end.promise;
  readonly killedWith: number[] = [];
  readonly written: string[] = [];
  latestReport: ReportMessage | null = null;
  readonly input: RunHandle["input"];
  #stdout = "";
  #stderr = "";
  readonly #listeners = new Set<() => void>();

  constructor(
    readonly command: RunCommand,
    readonly signal: AbortSignal,
  ) {
    const input = { isEnded: !command.keepsStdinOpen, unsentBytes: 0 };
    const hasInput = command.stdin !== null || command.keepsStdinOpen === true;
    this.input = hasInput
      ? Object.assign(input, {
          write: (bytes: Uint8Array) => void this.written.push(Buffer.from(bytes).toString()),
          end: () => {
            input.isEnded = true;
          },
        })
      : null;
    signal.addEventListener("abort", () => this.end.reject(signal.reason), { once: true });
    this.ended.catch(() => undefined);
  }

  print(stdout: string, stderr = ""): void {
    this.#stdout += stdout;
    this.#stderr += stderr;
    this.#tell();
  }

  report(members: Partial<ReportMessage>): void {
    const nothing = { stdout_bytes: 0, stderr_bytes: 0, last_line: "", stdout_path: null, stderr_path: null };
    this.latestReport = { ...nothing, ...members };
    this.#tell();
  }

  heads() {
    return { stdout: new TextEncoder().encode(this.#stdout), stderr: new TextEncoder().encode(this.#stderr) };
  }

  kill(signal: number): void {
    this.killedWith.push(signal);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

/** A machine without a machine. Runs wait until the test ends them, unless `onRun` answers. */
export class FakeVm implements SessionVm {
  readonly runs: FakeRunHandle[] = [];
  /** Files in the guest by path */
  readonly files = new Map<string, Uint8Array>();
  readonly puts: { path: string; content: Uint8Array }[] = [];
  onRun: ((command: RunCommand) => CommandEnd | Promise<CommandEnd>) | null = null;
  onPut: (() => Promise<void>) | null = null;
  onCheckpoint: () => Promise<TakenCheckpoint> = () => Promise.reject(new Error("no checkpoint"));
  /** Holds back the end of disposal until it resolves */
  beforeDisposed: Promise<void> = Promise.resolve();
  isDisposed = false;
  readonly #death = Promise.withResolvers<VmDeath>();

  get died(): Promise<VmDeath> {
    return this.#death.promise;
  }

  traces() {
    return vmTraces(4711, "QEMU's words", "the guest's");
  }

  die(death: VmDeath = { kind: "guest_panic" }): void {
    this.#death.resolve(death);
  }

  startRun(command: RunCommand, signal: AbortSignal): FakeRunHandle {
    signal.throwIfAborted();
    const run = new FakeRunHandle(command, signal);
    if (this.onRun) Promise.try(this.onRun, command).then(run.end.resolve, run.end.reject);
    else this.runs.push(run);
    return run;
  }

  async getFile(path: string, { offset, bytes, limitBytes }: GetRange): Promise<FileContent> {
    const file = this.files.get(path);
    if (!file)
      throw new AgentError("agent_refused", "no such file", { refusal: "not_found", errno: "ENOENT" });
    const end = offset + Math.min(bytes ?? limitBytes, limitBytes);
    return { content: file.subarray(offset, end), fileBytes: file.byteLength };
  }

  checkpoint(): Promise<TakenCheckpoint> {
    return this.onCheckpoint();
  }

  async putFile(path: string, content: Uint8Array): Promise<void> {
    this.puts.push({ path, content });
    await this.onPut?.();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.beforeDisposed;
    this.isDisposed = true;
  }
}

/** Gives out fake machines at once, or when the test says so. */
export class FakeVmSource implements VmSource {
  /** All that were given out, oldest first */
  readonly vms: FakeVm[] = [];
  /** What the next claim rejects with */
  failure: Error | null = null;
  /** Claims wait for this */
  gate: Promise<void> = Promise.resolve();
  /** A claim that ignores cancellation, as one that was just about to succeed */
  ignoresAbort = false;
  claims = 0;
  /** Checkpoints that were asked for */
  readonly forkedFrom: string[] = [];
  isDisposed = false;

  get lastVm(): FakeVm {
    return this.vms.at(-1)!;
  }

  fork(checkpointId: string, call: { signal: AbortSignal }): Promise<FakeVm> {
    this.forkedFrom.push(checkpointId);
    return this.claim(call);
  }

  async claim({ signal }: { signal: AbortSignal }): Promise<FakeVm> {
    this.claims++;
    await this.gate;
    if (!this.ignoresAbort) signal.throwIfAborted();
    if (this.failure) throw this.failure;
    const vm = new FakeVm();
    this.vms.push(vm);
    return vm;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.isDisposed = true;
  }
}
