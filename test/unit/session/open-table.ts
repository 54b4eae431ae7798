import type { Logger } from "../../../src/base/logger.ts";
import { DEFAULT_OUTPUT_BYTES, type RunRequest } from "../../../src/session/run-contract.ts";
import { SessionTable } from "../../../src/session/session-table.ts";
import { FakeVmSource } from "./fake-vm-source.ts";

const silent = () => undefined;
export const SILENT_LOG: Logger = { debug: silent, info: silent, warn: silent, error: silent };

/** A call nobody cancels */
export const CALL = { signal: new AbortController().signal };

export interface OpenTable {
  source: FakeVmSource;
  table: SessionTable;
}

/** A table over fake machines, with two slots and ten minutes of idleness unless told otherwise. */
export function openTable({ maxSessions = 2, idleMs = 600_000, callMs = 0 } = {}): OpenTable {
  const source = new FakeVmSource();
  return { source, table: new SessionTable({ source, maxSessions, idleMs, callMs, log: SILENT_LOG }) };
}

export function runRequest(command: string, members: Partial<RunRequest> = {}): RunRequest {
  const nothing = { cwd: null, stdin: null, maxOutputBytes: DEFAULT_OUTPUT_BYTES, isBackground: false };
  return { command, timeoutMs: 1000, ...nothing, ...members };
}
