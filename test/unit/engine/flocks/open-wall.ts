import type { LogFields, Logger } from "../../../../src/base/logger.ts";
import { TownWall } from "../../../../src/engine/flocks/wall/town-wall.ts";
import { WallLog, type WallLogOptions } from "../../../../src/engine/flocks/wall/wall-log.ts";
import type { WallMessage } from "../../../../src/engine/flocks/wall/wall-message.ts";

const MIB = 1_048_576;

/** Collects what is logged. */
export class Logged implements Logger {
  readonly lines: string[] = [];
  debug(_fields: LogFields, message: string): void {
    this.lines.push(`debug ${message}`);
  }
  info(_fields: LogFields, message: string): void {
    this.lines.push(`info ${message}`);
  }
  warn(_fields: LogFields, message: string): void {
    this.lines.push(`warn ${message}`);
  }
  error(_fields: LogFields, message: string): void {
    this.lines.push(`error ${message}`);
  }
}

export type TestOptions = Partial<WallLogOptions>;

export function openLog(dir: string, options: TestOptions = {}): Promise<WallLog> {
  return WallLog.open(dir, {
    maxBytes: 10 * MIB,
    keep: 3,
    log: new Logged(),
    onWritten: () => undefined,
    ...options,
  });
}

export function openWall(dir: string, options: TestOptions = {}): Promise<TownWall> {
  return TownWall.open(dir, { maxBytes: 10 * MIB, keep: 3, log: new Logged(), ...options });
}

/** Everything that is kept. */
export function allOf(log: WallLog): WallMessage[] {
  const all: WallMessage[] = [];
  for (let position = log.start; position < log.end; ) {
    const { messages, next } = log.read(position)!;
    all.push(...messages);
    position = next;
  }
  return all;
}
