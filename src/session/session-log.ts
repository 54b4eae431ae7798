import { Fault } from "../base/fault.ts";
import type { LogFields, Logger } from "../base/logger.ts";
import { type VmTraces, visibleText } from "../vm/vm-traces.ts";
import type { Session } from "./session.ts";
import { shortSessionId } from "./session-id.ts";
import type { SessionState } from "./session-state.ts";

const MAX_CAUSE_CHARACTERS = 2048;

type SessionEvent = "opened" | "open_failed" | "reset" | "ended";

/** One line per event of a session's life. Ids are keys, so logs have only their start. */
export class SessionLog {
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  state(sessionId: string, from: SessionState, to: SessionState): void {
    this.#log.debug({ session: shortSessionId(sessionId), from, to }, "session state");
  }

  /** What somebody asked for */
  note(session: Session, event: SessionEvent, cause?: string): void {
    this.#log.info(...lineOf(session, event, cause));
  }

  /** What nobody asked for; the fields say what there is to find out why. */
  warn(session: Session, event: SessionEvent, cause: string, evidence: LogFields): void {
    const [fields, message] = lineOf(session, event, cause);
    this.#log.warn({ ...fields, ...evidence }, message);
  }
}

/** Of a session that ends with its machine; taken before its runs hear of it. */
export function evidenceOf(session: Session, traces: VmTraces): LogFields {
  const { ageMs, runs } = session.summary(performance.now(), 0);
  return { age_ms: Math.round(ageMs), runs, ...traces };
}

/** Of a machine that did not come up. */
export function evidenceIn(error: unknown): LogFields {
  return error instanceof Fault && error.evidence !== null ? error.evidence : {};
}

function lineOf(session: Session, event: SessionEvent, cause?: string): [LogFields, string] {
  const told = cause === undefined ? {} : { cause: visibleText(cause).slice(0, MAX_CAUSE_CHARACTERS) };
  return [{ event, session: shortSessionId(session.id), ...told }, `session ${event}`];
}
