import { constants } from "node:fs";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import * as z from "zod";
import { writeFileAtomically } from "../base/atomic-file.ts";
import { parseJsonLines } from "../base/json-lines-text.ts";
import { AdapterError, sentenceOf } from "./adapter-error.ts";
import { lockWithin } from "./lock-within.ts";
import { Mutex } from "./mutex.ts";

const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;
const LOCK_MS = 10_000;
/** Never through a symlink, and not waiting for the other end of a pipe */
const SAFE_OPEN = constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** One line of the runtime audit, its keys in this order. */
const RECORD = z.object({
  /** RFC 3339, UTC */
  timestamp: z.string(),
  tenant_id: z.string(),
  vm_id: z.string().optional(),
  session_alias: z.string().optional(),
  tool_name: z.string(),
  daemon_operation: z.string(),
  result_code: z.enum(["success", "error"]),
  error: z.string().optional(),
});

export type AuditRecord = z.output<typeof RECORD>;

export interface AuditContent {
  /** Oldest first */
  records: AuditRecord[];
  /** Lines that are no record, such as one that a full disk cut short */
  damagedLines: number;
}

/** What of an audit is kept; 0 switches a limit off. */
export interface Retention {
  keepLast: number;
  maxAgeSeconds: number;
}

/**
 * The runtime audit: an append-only file of JSON lines, private to its user, never reached through a symlink. Several
 * processes may use one file. All rejects with `AdapterError`.
 */
export class RuntimeAudit {
  readonly path: string;
  /** Calls of this process queue here, so that only processes compete for the lock, which is polled */
  readonly #turn = new Mutex();

  constructor(path: string) {
    this.path = path;
  }

  /** Rejects when what lies at its path cannot be written; nothing there is fine, and stays so. */
  check(): Promise<void> {
    return this.#attempt("write", async () => {
      try {
        await using _file = await openRegular(this.path, constants.O_WRONLY);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      }
    });
  }

  /** Appends one line, which has reached the disk when this resolves. */
  append(record: AuditRecord): Promise<void> {
    return this.#alone("write", async () => {
      const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT;
      await using file = await openRegular(this.path, flags);
      const start = (await endsInsideLine(file)) ? "\n" : "";
      await file.writeFile(`${start}${JSON.stringify(RECORD.parse(record))}\n`);
      await file.sync();
    });
  }

  /** All records, or those of a tenant, and of these the newest `limit`. Nothing when there is no file. */
  async read({ tenantId, limit }: { tenantId?: string; limit?: number } = {}): Promise<AuditContent> {
    const { records, damagedLines } = await this.#attempt("read", () => readAll(this.path));
    const wanted =
      tenantId === undefined ? records : records.filter((record) => record.tenant_id === tenantId);
    const first = limit === undefined ? 0 : Math.max(0, wanted.length - limit);
    return { records: wanted.slice(first), damagedLines };
  }

  /** Removes what the retention does not keep; resolves with the number of records left. */
  async prune({ keepLast, maxAgeSeconds }: Retention, nowMs = Date.now()): Promise<number> {
    if (keepLast < 0) throw new AdapterError("bad_input", "keep_last must be non-negative");
    if (maxAgeSeconds < 0) throw new AdapterError("bad_input", "max_age_seconds must be non-negative");
    const oldestMs = maxAgeSeconds === 0 ? Number.NEGATIVE_INFINITY : nowMs - maxAgeSeconds * 1000;
    return await this.#alone("prune", async () => {
      const { records } = await readAll(this.path);
      const recent = records.filter(({ timestamp }) => Date.parse(timestamp) >= oldestMs);
      const kept = keepLast === 0 ? recent : recent.slice(-keepLast);
      const text = kept.map((record) => `${JSON.stringify(record)}\n`).join("");
      if (kept.length < records.length) await writeFileAtomically(this.path, text, FILE_MODE);
      return kept.length;
    });
  }

  /** A prune must not lose what is appended meanwhile, also by another process. */
  #alone<T>(what: string, work: () => Promise<T>): Promise<T> {
    return this.#turn.run(() =>
      this.#attempt(what, async () => {
        await mkdir(dirname(this.path), { recursive: true, mode: DIRECTORY_MODE });
        await using _lock = await lockWithin(LOCK_MS, this.path);
        return await work();
      }),
    );
  }

  async #attempt<T>(what: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const isLink = (error as NodeJS.ErrnoException).code === "ELOOP";
      const cause = isLink ? "it is a symlink" : sentenceOf(error);
      throw new AdapterError("audit", `${what} runtime audit ${JSON.stringify(this.path)}: ${cause}`, error);
    }
  }
}

async function readAll(path: string): Promise<AuditContent> {
  let text: string;
  try {
    await using file = await openRegular(path, constants.O_RDONLY);
    text = await file.readFile("utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { records: [], damagedLines: 0 };
    throw error;
  }
  const found = parseJsonLines(text);
  const records = found.records.flatMap((record) => RECORD.safeParse(record).data ?? []);
  return { records, damagedLines: found.damagedLines + found.records.length - records.length };
}

async function openRegular(path: string, flags: number): Promise<FileHandle> {
  const file = await open(path, flags | SAFE_OPEN, FILE_MODE);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new Error("it is no regular file");
}

/** A record that was cut short must not spoil the next one. */
async function endsInsideLine(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat();
  if (size === 0) return false;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] !== 0x0a;
}
