import type { Logger } from "../base/logger.ts";
import { EXIT } from "./exit-codes.ts";

/** An error nobody awaits is a bug: the process says so and ends. Sessions end with it; an engine's VMs go on. */
export function exitOnBug(log: Logger): void {
  const exit = (error: unknown) => {
    log.error({ err: error }, "ending because of a bug");
    process.exit(EXIT.bug);
  };
  process.on("uncaughtException", exit);
  process.on("unhandledRejection", exit);
}
