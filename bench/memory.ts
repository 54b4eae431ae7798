import { readFileSync } from "node:fs";
import { vmsOf } from "../test/support/leftovers.ts";

/** Memory of all VM processes of a server, in MiB. */
export function vmMemory(serverPid: number): { pssMib: number; privateMib: number; processes: number } {
  let pssKib = 0;
  let privateKib = 0;
  const processes = vmsOf(serverPid);
  for (const { pid } of processes) {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "latin1");
    const kib = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(rollup)?.[1] ?? 0);
    pssKib += kib("Pss");
    privateKib += kib("Private_Dirty") + kib("Private_Clean");
  }
  return { pssMib: pssKib / 1024, privateMib: privateKib / 1024, processes: processes.length };
}
