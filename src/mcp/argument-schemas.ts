import * as z from "zod";
import { DEFAULT_OUTPUT_BYTES } from "../session/run-contract.ts";
import { signalNumber } from "../session/signal-names.ts";
import { decodeBase64 } from "./decode-base64.ts";

const MIB = 1_048_576;
const MAX_SESSION_ID_CHARS = 128;
const MAX_COMMAND_BYTES = MIB;
const MAX_PATH_BYTES = 4095;
const MAX_CONTENT_BYTES = 32 * MIB;
const MIN_TIMEOUT_S = 0.001;
const MAX_TIMEOUT_S = 3600;
/** Clients give up on a call after 60 s */
const MAX_WAIT_S = 50;

/** Text whose absence and wrong type are told in words. `fix` says what to pass instead. */
export function text(name: string, fix: string) {
  return z.string({
    error: ({ input }) =>
      input === undefined
        ? `${name} is missing. ${fix}`
        : `${name} must be text, not ${kindOf(input)}. ${fix}`,
  });
}

export const sessionId = text("session_id", "Pass the id that open_session returned.")
  .min(1, "session_id is empty. Pass the id that open_session returned.")
  .max(MAX_SESSION_ID_CHARS, {
    error: ({ input }) =>
      `session_id is ${String(input).length} characters long, which no id is. Pass the id that open_session returned.`,
  });

export const checkpointId = text("checkpoint_id", "Pass the id that checkpoint returned.")
  .min(1, "checkpoint_id is empty. Pass the id that checkpoint returned.")
  .max(MAX_SESSION_ID_CHARS, "checkpoint_id is longer than any id. Pass the id that checkpoint returned.");

export const command = text("command", "Pass the shell text to run.")
  .min(1, "command is empty. Pass the shell text to run.")
  .refine(...noNul("command", "Write such bytes to a file with write_file."))
  .refine(...atMost("command", MAX_COMMAND_BYTES, "Write the script with write_file and run that file."));

export const timeoutS = z
  .number({
    error: ({ input }) => `timeout_s must be a number of seconds, not ${kindOf(input)}. ${TIMEOUT_FIX}`,
  })
  .refine((seconds) => seconds >= MIN_TIMEOUT_S && seconds <= MAX_TIMEOUT_S, {
    error: ({ input }) => `timeout_s is ${input}. ${TIMEOUT_FIX}`,
  });

const TIMEOUT_FIX = `Pass a number from ${MIN_TIMEOUT_S} to ${MAX_TIMEOUT_S}, or leave it out for 30; start longer work in the background with nohup … &.`;

export const waitS = z
  .number({ error: ({ input }) => `wait_s must be a number of seconds, not ${kindOf(input)}. ${WAIT_FIX}` })
  .refine((seconds) => seconds >= 0 && seconds <= MAX_WAIT_S, {
    error: ({ input }) => `wait_s is ${input}. ${WAIT_FIX}`,
  });

const WAIT_FIX = `Pass a number from 0 to ${MAX_WAIT_S}, or leave it out for 10; poll again to wait longer.`;

/** A whole number from `min` to `max`. `fix` says what to pass instead. */
export function wholeNumber(name: string, min: number, max: number, fix: string) {
  const rule = `Pass a whole number from ${min} to ${max}, or leave it out for ${fix}.`;
  return z
    .number({ error: ({ input }) => `${name} must be a number, not ${kindOf(input)}. ${rule}` })
    .refine((value) => Number.isInteger(value) && value >= min && value <= max, {
      error: ({ input }) => `${name} is ${input}. ${rule}`,
    });
}

export function flag(name: string) {
  return z.boolean({
    error: ({ input }) => `${name} must be true or false, not ${kindOf(input)}. Leave it out for false.`,
  });
}

export const maxOutputBytes = wholeNumber("max_output_bytes", 0, MIB, String(DEFAULT_OUTPUT_BYTES));

export const runId = text("run_id", "Pass the run_id that run returned.").max(
  MAX_SESSION_ID_CHARS,
  "run_id is longer than any id. Pass the run_id that run returned.",
);

/** The name of a signal; becomes its number. */
export const signal = text("signal", "Pass a name such as INT, TERM or KILL.").transform((name, context) => {
  const number = signalNumber(name);
  if (number !== null) return number;
  const message = `signal ${JSON.stringify(name.slice(0, 20))} is none. Pass a name such as INT, TERM or KILL.`;
  context.addIssue({ code: "custom", message });
  return z.NEVER;
});

/** A path in the guest. */
export function guestPath(name: string, fix: string) {
  return text(name, fix)
    .min(1, `${name} is empty. ${fix}`)
    .refine(...noNul(name, fix))
    .refine(...atMost(name, MAX_PATH_BYTES, fix));
}

/** Text for stdin; becomes its UTF-8 bytes. */
export const stdin = text("stdin", "Pass text, or leave it out for no input.")
  .refine(
    ...atMost(
      "stdin",
      MAX_CONTENT_BYTES,
      "Write the input with write_file in parts and redirect from there.",
    ),
  )
  .transform((value): Uint8Array => Buffer.from(value));

/** Base64 of a file; becomes its bytes. Empty for an empty file. */
export const contentBase64 = text("content_base64", "Pass the file's bytes in base64.").transform(
  (value, context): Uint8Array => {
    const decoded = decodeBase64(value);
    const problem =
      "problem" in decoded
        ? `content_base64 ${decoded.problem}. Pass standard base64 (A-Z a-z 0-9 + /) with = padding.`
        : tooLong(
            "content_base64",
            decoded.bytes.byteLength,
            MAX_CONTENT_BYTES,
            "Write it in parts and join them.",
          );
    if (problem === null) return (decoded as { bytes: Uint8Array }).bytes;
    context.addIssue({ code: "custom", message: problem });
    return z.NEVER;
  },
);

function tooLong(name: string, sizeBytes: number, limitBytes: number, fix: string): string | null {
  return sizeBytes <= limitBytes
    ? null
    : `${name} has ${sizeBytes} bytes; the limit is ${limitBytes}. ${fix}`;
}

/** Arguments for `refine`: a limit on the UTF-8 length. */
function atMost(name: string, limitBytes: number, fix: string) {
  return [
    (value: string) => Buffer.byteLength(value) <= limitBytes,
    {
      error: ({ input }: { input?: unknown }) =>
        tooLong(name, Buffer.byteLength(String(input)), limitBytes, fix) ?? undefined,
    },
  ] as const;
}

/** Arguments for `refine`: no NUL, which ends text in the guest's kernel. */
function noNul(name: string, fix: string) {
  return [(value: string) => !value.includes("\0"), `${name} contains a NUL character. ${fix}`] as const;
}

/** What JSON calls a value, with its article. */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "string") return "text";
  if (typeof value === "object") return "an object";
  return `a ${typeof value}`;
}
