import { readdir, rename, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../base/logger.ts";
import { readJsonFile } from "../json-file.ts";
import { REMOVING_PREFIX, STATE_FILE_NAME } from "./engine-vm.ts";
import { type VmRecord, vmRecord } from "./vm-record.ts";

const VM_ID = /^vm-\d{1,20}$/;
const DAMAGED = ".damaged";

/**
 * What an earlier engine wrote of its VMs, the oldest first. A directory without a readable record is set aside; what it
 * did not live to remove is removed.
 */
export async function readVmRecords(
  dir: string,
  log: Logger,
): Promise<{ records: VmRecord[]; unreadable: string[] }> {
  const records: VmRecord[] = [];
  const unreadable: string[] = [];
  for (const name of (await readdir(dir)).sort()) {
    if (name.startsWith(REMOVING_PREFIX)) await rm(join(dir, name), { recursive: true, force: true });
    if (!VM_ID.test(name)) continue;
    const record = await readJsonFile(join(dir, name, STATE_FILE_NAME), vmRecord, log);
    if (record?.vm_id === name) records.push(record);
    else if ((await readdir(join(dir, name))).length === 0) {
      // The engine was killed before it could write the first record: there is no process either.
      await rmdir(join(dir, name));
    } else {
      unreadable.push(name);
      await rename(join(dir, name), join(dir, `${name}${DAMAGED}`));
      log.error({ vm_id: name }, "a VM has no readable record; its directory was set aside as .damaged");
    }
  }
  return { records, unreadable };
}
