import { randomId } from "../base/random-id.ts";

const SESSION_PREFIX = "ses_";
/** A run's id only tells it from others of its session. */
const RUN_BYTES = 5;
const SHORT_CHARACTERS = SESSION_PREFIX.length + 6;

/** Whoever holds it may use the session. */
export function newSessionId(): string {
  return randomId(SESSION_PREFIX);
}

export function newRunId(): string {
  return randomId("run_", RUN_BYTES);
}

/** The start of an id, for logs: enough to tell sessions apart, too little to use one. */
export function shortSessionId(id: string): string {
  return id.slice(0, SHORT_CHARACTERS);
}
