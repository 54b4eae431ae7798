import { EngineError } from "../engine-error.ts";

/** What a bundle is refused with; `reason` is a sentence for people. */
export function bundleRefused(
  error: "invalid_snapshot_bundle" | "diff_base_missing" | "snapshot_conflict",
  reason: string,
  cause?: unknown,
): EngineError {
  const status = error === "invalid_snapshot_bundle" ? 400 : 409;
  return new EngineError(status, error, { error, reason }, cause);
}
