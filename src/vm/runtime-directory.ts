import { accessSync, constants, lstatSync, mkdirSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { identityOf, isAlive, isProcessIdentity } from "../base/process-identity.ts";
import { VmError } from "./vm-error.ts";

/** sun_path of macOS, the shorter one, with its final NUL */
const MAX_SOCKET_PATH_BYTES = 104;
/** Room for "/<pid>-<start>/<vm number>/console.sock" */
const SOCKET_SUFFIX_BYTES = 48;

/**
 * Where this server keeps its VMs' sockets: `<root>/<pid>-<start time>/<number>/`, private to the user.
 * Nothing is created before the first VM, and nothing is left when the last one is gone.
 * One process may hold several at once, as a server does that builds a base beside its sessions.
 */
export class RuntimeDirectory implements Disposable {
  readonly path: string;
  readonly #root: string;
  readonly #vmPaths: string[] = [];
  static #nextVm = 1;

  private constructor(root: string, path: string) {
    this.#root = root;
    this.path = path;
  }

  /** Picks the first usable root and sweeps what dead servers left in it. */
  static open(candidates: string[] = rootCandidates()): RuntimeDirectory {
    const identity = identityOf(process.pid);
    const failures: string[] = [];
    for (const root of candidates) {
      const problem = rootProblem(root);
      if (problem !== null) {
        failures.push(`${root} ${problem}`);
        continue;
      }
      sweepDeadServers(root);
      return new RuntimeDirectory(root, join(root, identity ?? `${process.pid}-0`));
    }
    throw new VmError(
      "runtime_dir",
      `no directory for VM sockets: ${failures.join("; ")}. Set XDG_RUNTIME_DIR to a writable directory with a short path`,
    );
  }

  /**
   * Path of a directory of this name for what outlives this process, in the first usable root; it is not made, and no
   * sweep takes it. At most 15 bytes, to leave room for "/<12 characters>/console.sock".
   */
  static lastingPath(name: string, candidates: string[] = rootCandidates()): string {
    const root = candidates.find((candidate) => rootProblem(candidate) === null);
    if (root !== undefined) return join(root, name);
    throw new VmError(
      "runtime_dir",
      "no directory for VM sockets. Set XDG_RUNTIME_DIR to a writable directory with a short path",
    );
  }

  /** A new empty directory for one VM. Its owner removes it. */
  createVmDirectory(): string {
    const path = join(this.path, String(RuntimeDirectory.#nextVm++));
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 });
    } catch (error) {
      const reason = (error as Error).message;
      const next = "Make room there, or set XDG_RUNTIME_DIR to another directory with a short path";
      throw new VmError("runtime_dir", `no directory for a VM's sockets: ${reason}. ${next}`, error);
    }
    this.#vmPaths.push(path);
    return path;
  }

  [Symbol.dispose](): void {
    for (const path of this.#vmPaths.splice(0)) rmSync(path, { recursive: true, force: true });
    removeIfEmpty(this.path);
    removeIfEmpty(this.#root);
  }
}

/** Leaves a directory that others use or that is a mount of its own, and one that was never made. */
export function removeIfEmpty(path: string): void {
  try {
    rmdirSync(path);
  } catch (error) {
    if (!["ENOTEMPTY", "EEXIST", "ENOENT", "EBUSY"].includes((error as NodeJS.ErrnoException).code ?? ""))
      throw error;
  }
}

/** Clients pass almost no environment, so each place has a fallback. */
function rootCandidates(): string[] {
  const uid = process.getuid?.() ?? 0;
  const runtimeDir = process.env["XDG_RUNTIME_DIR"];
  return [
    ...(runtimeDir?.startsWith("/") ? [join(runtimeDir, "ignition")] : []),
    join(tmpdir(), `ignition-${uid}`),
    `/tmp/ignition-${uid}`,
    `/dev/shm/ignition-${uid}`,
  ];
}

/** Null when the root is ours, private and writable. */
function rootProblem(root: string): string | null {
  if (Buffer.byteLength(root) > MAX_SOCKET_PATH_BYTES - SOCKET_SUFFIX_BYTES)
    return "is too long for a socket path";
  try {
    mkdirSync(root, { recursive: true, mode: 0o700 });
    // Not followed: where anybody may create names, a link can lead anywhere.
    const found = lstatSync(root);
    if (!found.isDirectory()) return "is not a directory";
    if (found.uid !== process.getuid?.()) return "belongs to another user";
    if ((found.mode & 0o077) !== 0) return "is open to other users (chmod 700 it)";
    accessSync(root, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    return `is not writable (${(error as NodeJS.ErrnoException).code ?? "unknown error"})`;
  }
}

function sweepDeadServers(root: string): void {
  for (const name of readdirSync(root)) {
    if (isProcessIdentity(name) && !isAlive(name)) rmSync(join(root, name), { recursive: true, force: true });
  }
}
