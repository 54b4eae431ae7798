import type { RunCommand, RunHandle } from "../guest/run-handle.ts";
import type { FileContent, GetRange } from "../guest/transfer-file.ts";
import type { VmDeath } from "../vm/vm-death.ts";
import type { VmTraces } from "../vm/vm-traces.ts";

export interface TakenCheckpoint {
  checkpointId: string;
  /** To disk */
  bytesWritten: number;
  /** How long the session's processes stood still, in `ms` */
  pausedMs: number;
}

/** What a session needs of a machine; `vm/vm.ts` is the real one. */
export interface SessionVm extends AsyncDisposable {
  /** Settles with the first cause of death; never for a VM that was disposed of alive */
  readonly died: Promise<VmDeath>;
  /** What its end left to see, once it died */
  traces(): VmTraces;
  /** Throws when there is no agent to ask. An aborted signal kills the run. */
  startRun(command: RunCommand, signal: AbortSignal): RunHandle;
  checkpoint(signal: AbortSignal): Promise<TakenCheckpoint>;
  putFile(path: string, content: Uint8Array, signal: AbortSignal): Promise<void>;
  getFile(path: string, range: GetRange, signal: AbortSignal): Promise<FileContent>;
}

export interface ClaimCall {
  signal: AbortSignal;
  progress?: (message: string) => void;
}

/** Where sessions get their machines; `vm/clone-source.ts` is the real one. */
export interface VmSource extends AsyncDisposable {
  /** A machine that answered its probe, or a rejection with nothing left behind */
  claim(call: ClaimCall): Promise<SessionVm>;
  /** The same, of a checkpoint */
  fork(checkpointId: string, call: ClaimCall): Promise<SessionVm>;
}
