import type { LogFields } from "./logger.ts";

/**
 * Base of every error class of ours. One class per layer, each with its own union of codes.
 * `message` is one sentence that names the thing, the cause and the next step.
 */
export abstract class Fault<Code extends string> extends Error {
  readonly code: Code;
  /** For the log only: what there is to find the cause, and callers are not to see */
  evidence: LogFields | null = null;

  constructor(code: Code, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.name = new.target.name;
  }
}
