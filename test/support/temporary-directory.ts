import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";

/** An empty directory with a short path, removed with everything in it. */
export class TemporaryDirectory implements Disposable {
  readonly path = mkdtempSync("/tmp/ign-test-");

  join(...names: string[]): string {
    return join(this.path, ...names);
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
