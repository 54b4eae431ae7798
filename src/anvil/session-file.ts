import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { writeFileAtomically } from "../base/atomic-file.ts";
import { parseJson } from "../base/parse-json.ts";
import { AdapterError, sentenceOf } from "./adapter-error.ts";
import { LockHeld, lockWithin } from "./lock-within.ts";

const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;
/** For the adapter before this one to end, when a client starts a new one at once, in `ms` */
const GRACE_MS = 3000;

/** Reads `{"sessions": {name: vm_id}}`; empty when there is no file. Throws `AdapterError` for anything else. */
export async function readSessionFile(path: string): Promise<Map<string, string>> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return new Map();
    throw new AdapterError(
      "session_store",
      `load session store ${JSON.stringify(path)}: ${sentenceOf(error)}`,
      error,
    );
  }
  const sessions = parseSessions(text);
  if (sessions !== null) return sessions;
  throw new AdapterError(
    "session_store",
    `load session store ${JSON.stringify(path)}: it is not JSON of the shape {"sessions": {"name": "vm-id"}}. Repair it, or move it away to start without aliases.`,
  );
}

/** Writes the whole file or nothing. New directories are private; the modes of existing ones are left alone. */
export async function saveSessionFile(path: string, sessions: ReadonlyMap<string, string>): Promise<void> {
  const content = `${JSON.stringify({ sessions: Object.fromEntries(sessions) }, null, 2)}\n`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: DIRECTORY_MODE });
    await writeFileAtomically(path, content, FILE_MODE);
  } catch (error) {
    throw new AdapterError(
      "session_store",
      `save session store ${JSON.stringify(path)}: ${sentenceOf(error)}`,
      error,
    );
  }
}

/** Claims a store for this process until disposal. Throws `AdapterError` that names the process that has it. */
export async function claimSessionFile(path: string, signal: AbortSignal): Promise<AsyncDisposable> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: DIRECTORY_MODE });
    return await lockWithin(GRACE_MS, path, signal);
  } catch (error) {
    if (error instanceof LockHeld) throw inUse(path, error);
    throw new AdapterError(
      "session_store",
      `lock session store ${JSON.stringify(path)}: ${sentenceOf(error)}`,
      error,
    );
  }
}

function inUse(path: string, held: LockHeld): AdapterError {
  return new AdapterError(
    "session_store",
    `session store ${JSON.stringify(path)} is used by process ${held.pid}, and one process may write it. End that one, or give this one a session_store_path of its own.`,
    held,
  );
}

/** Null when the text is something else. */
function parseSessions(text: string): Map<string, string> | null {
  const value = parseJson(text);
  if (!isRecord(value) || !isRecord(value["sessions"])) return null;
  const entries = Object.entries(value["sessions"]);
  const areSound = entries.every(([name, vmId]) => name !== "" && typeof vmId === "string" && vmId !== "");
  return areSound ? new Map(entries as [string, string][]) : null;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
