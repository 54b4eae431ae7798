import { DeadlineError, within } from "../base/wait.ts";
import { EgressError } from "./egress-error.ts";

/** Settles with the reading, or rejects with `handshake_timeout`. `what` completes "… did not come in time". */
export async function inTime<T>(reading: Promise<T>, deadlineMs: number, what: string): Promise<T> {
  return await within(reading, deadlineMs, what).catch((error) => {
    if (!(error instanceof DeadlineError)) throw error;
    throw new EgressError("handshake_timeout", `${what} did not come in time`, error);
  });
}
