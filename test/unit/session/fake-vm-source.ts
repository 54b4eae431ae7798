import type { CommandEnd, RunCommand } from "../../../src/guest/run-command.ts";
import type { SessionVm, VmSource } from "../../../src/session/vm-source.ts";
import type { VmDeath } from "../../../src/vm/vm-death.ts";
import { SUCCESS } from "../../fake-vmm/fake-run.ts";

/** How a run ended, with its output as text */
export function commandEnd(exit: Partial<CommandEnd["exit"]> = {}, stdout = "", stderr = ""): CommandEnd {
  const captured = (text: string) => {
    const head = new TextEncoder().encode(text);
    return { head, tail: new Uint8Array(0), totalBytes: head.byteLength, path: null, isPathWhole: false };
  };
  return { exit: { ...SUCCESS, ...exit }, stdout: captured(stdout), stderr: captured(stderr) };
}

/** A machine without a machine. Runs wait until the test ends them, unless `onRun` answers. */
export class FakeVm implements SessionVm {
  readonly runs: { command: RunCommand; signal: AbortSignal; end: PromiseWithResolvers<CommandEnd> }[] = [];
  readonly puts: { path: string; content: Uint8Array }[] = [];
  onRun: ((command: RunCommand) => CommandEnd | Promise<CommandEnd>) | null = null;
  onPut: (() => Promise<void>) | null = null;
  /** Holds back the end of disposal until it resolves */
  beforeDisposed: Promise<void> = Promise.resolve();
  isDisposed = false;
  readonly #death = Promise.withResolvers<VmDeath>();

  get died(): Promise<VmDeath> {
    return this.#death.promise;
  }

  die(death: VmDeath = { kind: "guest_panic" }): void {
    this.#death.resolve(death);
  }

  async run(command: RunCommand, signal: AbortSignal): Promise<CommandEnd> {
    if (this.onRun) return await this.onRun(command);
    const end = Promise.withResolvers<CommandEnd>();
    signal.addEventListener("abort", () => end.reject(signal.reason), { once: true });
    this.runs.push({ command, signal, end });
    return await end.promise;
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
  isDisposed = false;

  get lastVm(): FakeVm {
    return this.vms.at(-1)!;
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
