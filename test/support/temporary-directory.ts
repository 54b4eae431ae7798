import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";

/** For tests that sync thousands of times, which a busy disk makes them wait for */
export const IN_MEMORY = existsSync("/dev/shm") ? "/dev/shm" : "/tmp";

/** An empty directory with a short path, removed with everything in it. */
export class TemporaryDirectory implements Disposable {
  readonly path: string;

  constructor(parent = "/tmp") {
    this.path = mkdtempSync(join(parent, "ign-test-"));
  }

  join(...names: string[]): string {
    return join(this.path, ...names);
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
