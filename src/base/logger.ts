export type LogFields = Readonly<Record<string, unknown>>;

/** Where every layer writes for people; never to stdout. An error goes under the key `err`. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

const LEVELS = ["debug", "info", "warn", "error", "silent"] as const;

/** Least severe level that is written */
export type LogLevel = (typeof LEVELS)[number];

export const LOG_LEVELS: readonly LogLevel[] = LEVELS;
