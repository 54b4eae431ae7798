import { posix } from "node:path";
import { decodeBase64 } from "../mcp/decode-base64.ts";
import { AdapterError } from "./adapter-error.ts";

const MAX_TIMEOUT_S = 86_400;
const MAX_FILE_BYTES = 4 * 1_048_576;
const MAX_ROLES = 20;
const MAX_ID_CHARS = 128;
const EGRESS_POLICIES: readonly string[] = ["deny_all", "profile", "allow_all"];

/** Each takes an argument as it came, trims it, and gives its value; throws `AdapterError` with the documented text. */

/** Null for a task without a limit of its own; else in `ms`. */
export function taskTimeoutMs(timeoutS: number | undefined): number | null {
  if (timeoutS === undefined || timeoutS === 0) return null;
  if (timeoutS < 0) throw refusal("timeout_seconds must be non-negative");
  if (timeoutS > MAX_TIMEOUT_S) throw refusal(`timeout_seconds must be <= ${MAX_TIMEOUT_S}`);
  return timeoutS * 1000;
}

export function prompt(given: string): string {
  if (given.trim() === "") throw refusal("prompt must be non-empty");
  return given;
}

export function egressPolicy(given: string | undefined): string {
  const policy = trimmed(given);
  if (policy === "") return "profile";
  if (EGRESS_POLICIES.includes(policy)) return policy;
  throw refusal("egress_policy must be empty, deny_all, profile, or allow_all");
}

/** Below /workspace, without "." and ".." */
export function workspacePath(given: string): string {
  const path = given.trim();
  if (path === "" || path.startsWith("/") || path.includes("\\") || path.includes("\0"))
    throw refusal("path must be a non-empty relative workspace path");
  const clean = posix.normalize(path).replace(/\/+$/, "");
  if (clean === "." || clean === ".." || clean.startsWith("../"))
    throw refusal("path must stay within workspace");
  return clean;
}

export function encoding(given: string | undefined): "text" | "base64" {
  const name = trimmed(given).toLowerCase();
  if (name === "" || name === "text") return "text";
  if (name === "base64") return "base64";
  throw refusal("encoding must be empty, text, or base64");
}

/** The bytes a copy_in stands for */
export function fileContent(given: string, as: "text" | "base64"): Uint8Array {
  const bytes = as === "text" ? Buffer.from(given) : fromBase64(given);
  if (bytes.length <= MAX_FILE_BYTES) return bytes;
  throw refusal(`content exceeds ${MAX_FILE_BYTES} byte workspace file limit`);
}

export function snapshotType(given: string | undefined): string {
  const type = trimmed(given).toLowerCase();
  if (type === "" || type === "full" || type === "diff") return type;
  throw refusal("type must be empty, full, or diff");
}

export function task(given: string): string {
  return nonEmpty(given, "task must be non-empty");
}

export function roles(given: readonly string[]): string[] {
  if (given.length === 0) throw refusal("roles must contain at least one role");
  if (given.length > MAX_ROLES) throw refusal(`roles must contain at most ${MAX_ROLES} roles`);
  return given.map((role) => {
    const name = nonEmpty(role, "roles must not contain empty role");
    if (/[/\\]/.test(name)) throw refusal("roles must not contain path separators");
    return name;
  });
}

export function flockId(given: string): string {
  const id = nonEmpty(given, "flock_id is required");
  if (/[/\\]/.test(id)) throw refusal("flock_id must not contain path separators");
  // A URL would lose these segments
  if (id === "." || id === "..") throw refusal('flock_id must not be "." or ".."');
  return id;
}

export function required(name: string, given: string): string {
  return nonEmpty(given, `${name} is required`);
}

export function snapshotId(given: string): string {
  return resourceId("snapshot_id", required("snapshot_id", given));
}

/** Refuses what could lead elsewhere as a part of a path. */
export function resourceId(name: string, id: string): string {
  if (isResourceId(id)) return id;
  throw refusal(
    `${name} must be at most ${MAX_ID_CHARS} of A-Z a-z 0-9 . _ - and neither "." nor contain ".."`,
  );
}

export function isResourceId(text: string): boolean {
  return (
    text.length <= MAX_ID_CHARS && /^[A-Za-z0-9._-]+$/.test(text) && text !== "." && !text.includes("..")
  );
}

export function nonEmpty(given: string, otherwise: string): string {
  const text = given.trim();
  if (text === "") throw refusal(otherwise);
  return text;
}

export function trimmed(given: string | undefined): string {
  return given?.trim() ?? "";
}

function fromBase64(given: string): Uint8Array {
  const decoded = decodeBase64(given);
  if ("bytes" in decoded) return decoded.bytes;
  throw refusal("content must be valid base64");
}

function refusal(text: string): AdapterError {
  return new AdapterError("bad_input", text);
}
