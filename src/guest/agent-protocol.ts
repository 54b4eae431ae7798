/**
 * The agent's messages; docs/wire/agent.md is the authority.
 *
 *   host → agent   HELLO CLONED PING HOLD RELEASE PROBE · RUN COMMAND STDIN STDIN_EOF KILL · PUT GET DATA CREDIT CANCEL
 *                  LISTEN OPEN EOF
 *   agent → host   OK ERROR · STDOUT STDERR REPORT EXIT · DATA CREDIT · ACCEPTED EOF
 */
import { z } from "zod";

export const AGENT_PORT = 7000;
export const PROTOCOL_VERSION = 1;
/** Bytes a sender may have under way on one stream beyond what was granted */
export const INITIAL_CREDIT_BYTES = 1_048_576;
export const MAX_COMMAND_BYTES = 1_048_576;
/** As INITIAL_CREDIT_BYTES, for a tunnel in either direction; more is never granted */
export const TUNNEL_WINDOW_BYTES = 65_536;
/** Of one connection, whichever side opened them */
export const MAX_TUNNELS = 1024;
/** Streams that the agent opens have numbers from here on */
export const FIRST_AGENT_STREAM = 0x8000_0000;
/** A word of HELLO's `features`: LISTEN and OPEN are known */
export const TUNNEL_FEATURE = "tcp";

export const Message = {
  HELLO: 0x01,
  CLONED: 0x02,
  PING: 0x03,
  HOLD: 0x04,
  RELEASE: 0x05,
  PROBE: 0x06,
  RUN: 0x10,
  COMMAND: 0x11,
  STDIN: 0x12,
  STDIN_EOF: 0x13,
  KILL: 0x14,
  PUT: 0x20,
  DATA: 0x21,
  EOF: 0x22,
  GET: 0x30,
  CREDIT: 0x40,
  CANCEL: 0x41,
  LISTEN: 0x50,
  OPEN: 0x51,
  OK: 0x80,
  STDOUT: 0x91,
  STDERR: 0x92,
  REPORT: 0x93,
  EXIT: 0x95,
  ACCEPTED: 0x96,
  ERROR: 0xff,
} as const;

const count = z.int().nonnegative();

export const helloReply = z.object({
  protocol: count,
  nonce: z.string(),
  /** Part of our own sentences */
  build: z.string().regex(/^[0-9a-f]{1,64}$/),
  kernel: z.string().max(128),
  features: z.string().max(1024),
});
export type HelloReply = z.infer<typeof helloReply>;

/** Part of our own sentences, so it is what our agent says or nothing */
const path = z
  .string()
  .regex(/^\/run\/ignition\/runs\/[0-9]{1,20}\/std(?:out|err)$/)
  .nullable();

export const reportMessage = z.object({
  stdout_bytes: count,
  stderr_bytes: count,
  /** "" until there was one */
  last_line: z
    .string()
    .max(200)
    .regex(/^\P{Cc}*$/u),
  stdout_path: path,
  stderr_path: path,
});
export type ReportMessage = z.infer<typeof reportMessage>;

const exitMembers = z.object({
  exit_code: z.int().min(0).max(255).nullable(),
  signal: z.int().min(1).max(64).nullable(),
  timed_out: z.boolean(),
  killed: z.boolean(),
  oom_killed: z.boolean(),
  pids_exhausted: z.boolean(),
  overlay_full: z.boolean(),
  duration_us: count,
  background: count,
  stdout_bytes: count,
  stdout_head_bytes: count,
  stdout_path: path,
  stdout_spool_complete: z.boolean(),
  stderr_bytes: count,
  stderr_head_bytes: count,
  stderr_path: path,
  stderr_spool_complete: z.boolean(),
});
/** The shell ended either with a status or by a signal. */
export const exitReply = exitMembers.refine((exit) => (exit.exit_code === null) !== (exit.signal === null));
export type ExitReply = z.infer<typeof exitReply>;

export const errorReply = z.object({
  code: z.string().regex(/^[a-z_]{1,40}$/),
  errno: z
    .string()
    .regex(/^[A-Z0-9]{1,16}$/)
    .nullable(),
  message: z.string().max(4096),
});

/** Of requests whose answer says no more than that they were carried out */
const doneReply = z.object({});
export const getReply = z.object({ bytes: count, file_bytes: count });
export const putReply = z.object({ bytes: count });

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

export function encodeJson(value: object): Uint8Array {
  return encoder.encode(JSON.stringify(value));
}

/** Throws on bytes that are not UTF-8, not JSON, or not of the schema's shape. */
export function decodeJson<T>(schema: z.ZodType<T>, payload: Uint8Array): T {
  return schema.parse(JSON.parse(decoder.decode(payload)));
}

/** Throws on bytes that are no JSON object. */
export function decodeDone(payload: Uint8Array): void {
  decodeJson(doneReply, payload);
}

export function encodeCredit(bytes: number): Uint8Array {
  const payload = new Uint8Array(4);
  new DataView(payload.buffer).setUint32(0, bytes, true);
  return payload;
}

/** Throws on a payload that is not one u32. */
export function decodeCredit(payload: Uint8Array): number {
  if (payload.byteLength !== 4) throw new RangeError(`CREDIT carries ${payload.byteLength} bytes, not 4`);
  return new DataView(payload.buffer, payload.byteOffset).getUint32(0, true);
}
