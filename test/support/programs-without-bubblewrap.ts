import { mkdirSync, symlinkSync } from "node:fs";
import { basename } from "node:path";
import { TemporaryDirectory } from "./temporary-directory.ts";

/** A PATH with QEMU and what confines it, but without bubblewrap. */
export class ProgramsWithoutBubblewrap extends TemporaryDirectory {
  readonly env = { PATH: this.join("bin") };

  constructor() {
    super();
    mkdirSync(this.env.PATH);
    for (const name of ["qemu-system-x86_64", "qemu-system-aarch64", "setpriv", "prlimit"]) {
      const path = Bun.which(name);
      if (path !== null) symlinkSync(path, this.join("bin", basename(path)));
    }
  }
}
