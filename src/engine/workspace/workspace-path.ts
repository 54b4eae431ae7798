import { posix } from "node:path";
import { badRequest } from "../engine-error.ts";

const LONGEST_BYTES = 4000;
/** NAME_MAX of Linux */
const LONGEST_NAME_BYTES = 255;

/** What of the rules a schema can say: relative, no directory, not straight out of the workspace. */
export const WORKSPACE_PATH_PATTERN = String.raw`^(?!\s*\/)(?!\s*(?:\.\/+)*\.{0,2}\s*$)(?!\s*(?:\.\/+)*\.\.\/)(?![\s\S]*\/\s*$)[^\\\x00]+$`;

/** A path below /workspace, cleaned. Throws 400 for one that is empty or leads out. */
export function workspacePath(text: string): string {
  const trimmed = text.trim();
  const isRelative = trimmed !== "" && !trimmed.startsWith("/") && !/[\\\0]/.test(trimmed);
  if (!isRelative || Buffer.byteLength(trimmed) > LONGEST_BYTES)
    throw badRequest("path must be a non-empty relative workspace path");
  const clean = posix.normalize(trimmed).replace(/\/$/, "");
  if (clean === ".." || clean.startsWith("../")) throw badRequest("path must stay within workspace");
  if (clean === "." || trimmed.endsWith("/"))
    throw badRequest("path must be a non-empty relative workspace path");
  if (clean.split("/").some((name) => Buffer.byteLength(name) > LONGEST_NAME_BYTES))
    throw badRequest("workspace path is not a file");
  return clean;
}
