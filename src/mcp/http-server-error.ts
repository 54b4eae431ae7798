import { Fault } from "../base/fault.ts";

/** The HTTP server cannot be started. */
export class HttpServerError extends Fault<"listen_failed"> {}
