import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { writeFileAtomically } from "../../base/atomic-file.ts";

const FILE_NAME = "guest-token";
const TOKEN = /^[0-9a-f]{64}$/;
const TOKEN_BYTES = 32;
/** What it opens, and nothing else */
const PATH = /^\/flocks\/([^/]+)\/(post|wall|wall\/history)$/;

/** The token that opens the wall of one flock: `flocks/<flock_id>/guest-token`, for its owner only. */
export class GuestToken {
  readonly #digest: Buffer;

  private constructor(token: string) {
    this.#digest = digestOf(token);
  }

  /** Makes one when there is none. */
  static async open(dir: string): Promise<GuestToken> {
    const path = join(dir, FILE_NAME);
    const known = await readToken(path);
    if (known !== null) return new GuestToken(known);
    const token = randomBytes(TOKEN_BYTES).toString("hex");
    await writeFileAtomically(path, `${token}\n`, 0o600);
    return new GuestToken(token);
  }

  isThis(token: string): boolean {
    return timingSafeEqual(this.#digest, digestOf(token));
  }
}

/** The flock whose token would open this route, or null. */
export function flockOpenedBy(method: string, path: string): string | null {
  const [, flockId, rest] = PATH.exec(path) ?? [];
  return flockId !== undefined && method === (rest === "post" ? "POST" : "GET") ? flockId : null;
}

async function readToken(path: string): Promise<string | null> {
  try {
    const token = (await readFile(path, "utf8")).trim();
    return TOKEN.test(token) ? token : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
