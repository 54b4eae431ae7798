import { Fault } from "../base/fault.ts";

export type AdapterErrorCode =
  | "bad_input"
  | "unknown_session"
  | "session_exists"
  /** The alias store could not be read, locked or saved */
  | "session_store"
  /** The runtime audit could not be read or written */
  | "audit"
  /** Needs a router over several hosts */
  | "no_router"
  | "daemon_unreachable"
  /** The daemon answered with something else than is documented */
  | "bad_reply"
  /** A call did a part of its work and could not finish */
  | "unfinished";

/** Why the adapter could not do a call, in the sentence its caller gets. */
export class AdapterError extends Fault<AdapterErrorCode> {}

/** The daemon refused a request. Its body is kept as it came, for the caller to read. */
export class DaemonError extends Fault<"daemon_status"> {
  readonly status: number;
  readonly body: string;

  constructor(status: number, body: string) {
    super("daemon_status", `daemon returned status ${status}: ${body}`);
    this.status = status;
    this.body = body;
  }
}

/** The sentence of anything thrown. */
export function sentenceOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
