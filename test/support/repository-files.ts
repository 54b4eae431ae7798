import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT_PATH = resolve(import.meta.dir, "../..");
const NOT_OURS = /(^|\/)(node_modules|\.git|\.cache)(\/|$)|^(dist|build)(\/|$)|\.log$/;

export interface RepositoryFile {
  /** Relative to the repository */
  path: string;
  text: string;
}

/** Our text files under the given files and folders (default: everything), in a fixed order. */
export function repositoryFiles(...starts: string[]): RepositoryFile[] {
  const roots = starts.length > 0 ? starts : readdirSync(ROOT_PATH);
  return roots.flatMap(walk).filter((file) => !file.text.includes("\0"));
}

function walk(path: string): RepositoryFile[] {
  const fullPath = join(ROOT_PATH, path);
  if (NOT_OURS.test(path) || !existsSync(fullPath)) return [];
  if (!statSync(fullPath).isDirectory()) return [{ path, text: readFileSync(fullPath, "utf8") }];
  return readdirSync(fullPath)
    .sort()
    .flatMap((name) => walk(join(path, name)));
}
