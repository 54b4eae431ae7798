import { realpathSync } from "node:fs";
import { dirname } from "node:path";
import { VmError } from "../vm-error.ts";

/** Read-only RAM files without ROM need 8.2. */
const FLOOR = [8, 2] as const;
const VERSION = /QEMU emulator version (\d+)\.(\d+)(?:\.(\d+))?/;

export interface QemuProgram {
  path: string;
  /** Such as "10.0.2" */
  version: string;
  /** Directory that holds the program's bin/ and share/, such as "/usr" */
  prefix: string;
}

let found: Promise<QemuProgram> | null = null;

/** The QEMU on PATH that runs guests of this machine's architecture. Asked once per process. */
export function findQemu(): Promise<QemuProgram> {
  found ??= locate().catch((error) => {
    found = null;
    throw error;
  });
  return found;
}

async function locate(): Promise<QemuProgram> {
  const name = process.arch === "arm64" ? "qemu-system-aarch64" : "qemu-system-x86_64";
  const path = Bun.which(name);
  if (path === null) {
    throw new VmError("vmm_missing", `${name} is not on PATH; install it: ${installHint()}`);
  }
  const child = Bun.spawn([path, "--version"], { stdin: "ignore", stdout: "pipe", stderr: "ignore" });
  const text = await new Response(child.stdout).text();
  const match = VERSION.exec(text);
  if (!match)
    throw new VmError("vmm_missing", `${path} does not say its version; reinstall QEMU: ${installHint()}`);
  const [major, minor, patch] = [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)];
  if (major < FLOOR[0] || (major === FLOOR[0] && minor < FLOOR[1])) {
    throw new VmError(
      "vmm_missing",
      `${path} is QEMU ${major}.${minor}, and ${FLOOR.join(".")} is the oldest that can clone; ${installHint()}`,
    );
  }
  return { path, version: `${major}.${minor}.${patch}`, prefix: dirname(dirname(realpathSync(path))) };
}

function installHint(): string {
  if (process.platform === "darwin") return "brew install qemu";
  return "sudo apt-get install qemu-system-x86 (Debian 12: from bookworm-backports)";
}
