import type { Logger as Pino } from "pino";
import type { LogFields, Logger, LogLevel } from "../base/logger.ts";
import { LOG_LEVELS } from "../base/logger.ts";

/** Writes JSON lines to fd 2, each before the call returns. pino is loaded by the first line that is written. */
export function createStderrLogger(level: LogLevel): Logger {
  let pino: Pino | undefined;
  const threshold = LOG_LEVELS.indexOf(level);

  const write = (at: Exclude<LogLevel, "silent">, fields: LogFields, message: string): void => {
    if (LOG_LEVELS.indexOf(at) < threshold) return;
    pino ??= openPino(level);
    pino[at](fields, message);
  };

  return {
    debug: (fields, message) => write("debug", fields, message),
    info: (fields, message) => write("info", fields, message),
    warn: (fields, message) => write("warn", fields, message),
    error: (fields, message) => write("error", fields, message),
  };
}

function openPino(level: LogLevel): Pino {
  const pino = require("pino") as typeof import("pino");
  const stderr = pino.destination({ fd: 2, sync: true });
  stderr.on("error", () => {
    // With stderr gone there is nobody left to tell, and the server can do without it.
  });
  return pino.pino({ level, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime }, stderr);
}
