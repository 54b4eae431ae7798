import * as z from "zod";
import { decodeBase64 } from "./decode-base64.ts";

const MIB = 1_048_576;
const MAX_SESSION_ID_CHARS = 128;
const MAX_COMMAND_BYTES = MIB;
const MAX_PATH_BYTES = 4095;
const MAX_CONTENT_BYTES = 32 * MIB;
const MIN_TIMEOUT_S = 0.001;
const MAX_TIMEOUT_S = 3600;

/** Text whose absence and wrong type are told in words. `fix` says what to pass instead. */
function text(name: string, fix: string) {
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
