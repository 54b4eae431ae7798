import { EngineError, jsonError } from "../engine-error.ts";

/** What a bundle is refused with; `reason` is a sentence for people. */
export function bundleRefused(
  error: "invalid_snapshot_bundle" | "diff_base_missing" | "snapshot_conflict",
  reason: string,
  cause?: unknown,
): EngineError {
  const status = error === "invalid_snapshot_bundle" ? 400 : 409;
  return new EngineError(status, error, { error, reason }, cause);
}

/** What this engine, and not the bundle, is to blame for. */
export function importFailed(cause: Error): EngineError {
  return jsonError(500, "snapshot_import_failed", "snapshot_import_failed", { reason: cause.message }, cause);
}

export function tooManyImports(count: number): EngineError {
  const reason = `${count} imports are under way already; send it again when one of them has ended`;
  return jsonError(503, "too_many_imports", "too_many_imports", { reason });
}
