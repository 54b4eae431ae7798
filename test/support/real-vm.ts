import { describe } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT_PATH = resolve(import.meta.dir, "../..");

/** What `scripts/build` made and the tests drive. */
export const EXECUTABLE_PATH = join(ROOT_PATH, "dist/ignition-mcp");
export const IMAGE_PATH = join(ROOT_PATH, "dist/image");
/** Holds the base that `scripts/test` built; shared by all tests, never written by them. */
export const STORE_PATH = join(ROOT_PATH, ".cache/store");

/** Why tests with real VMs cannot run here, or null when they can. */
export function skipReason(): string | null {
  if (!existsSync(EXECUTABLE_PATH)) return "dist/ignition-mcp is missing, build it with scripts/build";
  if (!existsSync(IMAGE_PATH)) return "dist/image is missing, build it with scripts/build";
  if (Bun.which("qemu-system-x86_64") === null && Bun.which("qemu-system-aarch64") === null) {
    return "QEMU is missing, install it with scripts/setup";
  }
  return null;
}

/** A `describe` whose title carries the reason when its tests are skipped. */
export function describeWithVms(title: string, tests: () => void): void {
  const reason = skipReason();
  describe.skipIf(reason !== null)(reason === null ? title : `${title} (${reason})`, tests);
}

/** A private runtime directory and home, so that one test sees only what its own servers leave behind. */
export class TestHome implements Disposable {
  /** Short, since socket paths below it must fit into 107 bytes */
  readonly path = mkdtempSync("/tmp/ign-");
  /** Where servers keep their sockets: one directory per server */
  readonly runtimePath = join(this.path, "ignition");

  /** The whole environment of a server under test; `extra` is added to it. */
  env(extra: Record<string, string> = {}): Record<string, string> {
    mkdirSync(join(this.path, "home"), { recursive: true });
    return {
      PATH: process.env["PATH"] ?? "/usr/bin:/bin",
      HOME: join(this.path, "home"),
      XDG_RUNTIME_DIR: this.path,
      IGN_MCP_STORE: STORE_PATH,
      IGN_MCP_ACCEL: "tcg",
      ...extra,
    };
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
