import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../base/logger.ts";
import { readJsonFile } from "../json-file.ts";
import { METADATA_FILE_NAME } from "./flock.ts";
import { FLOCK_ID, type FlockRecord, flockRecord } from "./flock-record.ts";

/**
 * What an earlier engine wrote of its flocks, the oldest first. A directory without a record is the wall of a flock that
 * was deleted. `unreadable` are ids of flocks whose record is damaged, now or before: their VMs are left alone.
 */
export async function readFlockRecords(
  dir: string,
  log: Logger,
): Promise<{ records: FlockRecord[]; unreadable: Set<string> }> {
  const records: FlockRecord[] = [];
  const unreadable = new Set<string>();
  for (const name of (await readdir(dir)).sort()) {
    if (!FLOCK_ID.test(name)) continue;
    const path = join(dir, name, METADATA_FILE_NAME);
    const itsOwn = flockRecord.refine(({ flock_id }) => flock_id === name, "is of another flock");
    const record = await readJsonFile(path, itsOwn, log);
    if (record) records.push(record);
    else if (existsSync(`${path}.damaged`)) unreadable.add(name);
  }
  return { records, unreadable };
}
