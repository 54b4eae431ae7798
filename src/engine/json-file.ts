import { readFile, rename } from "node:fs/promises";
import type * as z from "zod";
import { writeFileAtomically } from "../base/atomic-file.ts";
import type { Logger } from "../base/logger.ts";

/** For its owner only: records hold tokens. */
const MODE = 0o600;

/**
 * What a JSON file holds, or null when there is none. One that is torn or is not of the schema is told, and set aside as
 * `<path>.damaged`: it must neither stop the engine nor be overwritten.
 */
export async function readJsonFile<T>(path: string, schema: z.ZodType<T>, log: Logger): Promise<T | null> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    await rename(path, `${path}.damaged`);
    log.error({ path, error: String(error) }, "a file is damaged; it was set aside as .damaged");
    return null;
  }
}

export async function writeJsonFile(path: string, content: object): Promise<void> {
  await writeFileAtomically(path, `${JSON.stringify(content, null, 2)}\n`, MODE);
}
