import { statfs } from "node:fs/promises";
import { jsonError } from "./engine-error.ts";

/** Keeps the disk under the work directory from filling up. */
export class DiskFloor {
  readonly #path: string;
  readonly #floorBytes: number;

  constructor(path: string, floorBytes: number) {
    this.#path = path;
    this.#floorBytes = floorBytes;
  }

  /** Rejects with 507 when less than the floor would be free after `neededBytes` more. */
  async require(neededBytes = 0): Promise<void> {
    const { bavail, bsize } = await statfs(this.#path);
    const freeBytes = bavail * bsize;
    if (freeBytes - neededBytes >= this.#floorBytes) return;
    const mib = (bytes: number) => Math.ceil(bytes / 1_048_576);
    const needed = neededBytes > 0 ? `up to ${mib(neededBytes)} MiB are needed, ` : "";
    const text = `${needed}${Math.floor(freeBytes / 1_048_576)} MiB are free, and ${mib(this.#floorBytes)} MiB must stay so (IGN_ENGINE_DISK_FLOOR_MIB)`;
    throw jsonError(507, "disk_full", `insufficient disk space: ${text}`);
  }
}
