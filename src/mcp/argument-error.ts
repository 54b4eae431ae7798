import { Fault } from "../base/fault.ts";

/** The arguments of a call break the tool's rules; the message names each of them, the cause and the fix. */
export class ArgumentError extends Fault<"bad_argument"> {}
