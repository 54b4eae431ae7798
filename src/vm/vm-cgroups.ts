import { accessSync, constants, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { VmError } from "./vm-error.ts";

/** QEMU's own memory besides the guest's: translated code, buffers, and the libraries it is first to touch */
const OVERHEAD_BYTES = 256 * 1_048_576;
/** Threads of one QEMU; it has some five, and more while it does block I/O */
const MAX_THREADS = 64;
const CPU_PERIOD_US = 100_000;
const CONTROLLERS = ["memory", "pids", "cpu"] as const;
type Controller = (typeof CONTROLLERS)[number];

export interface VmSize {
  memoryBytes: number;
  cpus: number;
}

/** The directory of this process's cgroup v2, or null when it is in none. */
export function ownCgroup(
  membership = readFileSync("/proc/self/cgroup", "utf8"),
  mounts = readFileSync("/proc/self/mountinfo", "utf8"),
): string | null {
  const path = /^0::(\/.*)$/m.exec(membership)?.[1];
  const mountPoint = /^\S+ \S+ \S+ \S+ (\S+) .*- cgroup2 /m.exec(mounts)?.[1];
  return path === undefined || mountPoint === undefined ? null : join(mountPoint, path);
}

/**
 * Why VMs get no cgroups of their own below `directory`, or null when they do. Limits can be set below a cgroup only
 * while it holds no process itself, so this server must be able to step aside, and be alone in it.
 */
export function cgroupObstacle(directory: string | null, pid = process.pid): string | null {
  if (directory === null) return "this process is in no cgroup v2";
  try {
    if (!controllersIn(directory).includes("memory")) return "its cgroup has no memory controller";
    for (const name of ["", "cgroup.procs", "cgroup.subtree_control"])
      accessSync(join(directory, name), constants.W_OK);
    const alone = readFileSync(join(directory, "cgroup.procs"), "utf8").trim() === String(pid);
    return alone ? null : "its cgroup is shared with other processes";
  } catch (error) {
    return `its cgroup is not delegated to it (${codeOf(error)})`;
  }
}

/** Bounds memory, threads and processor time of VMs, where this server was started in a cgroup delegated to it. */
export class VmCgroups implements Disposable {
  readonly #directory: string;
  readonly #controllers: Controller[];
  readonly #remove: (path: string) => void;
  readonly #vms = new Set<string>();
  #nextVm = 1;

  private constructor(directory: string, remove: (path: string) => void) {
    this.#directory = directory;
    this.#controllers = controllersIn(directory);
    this.#remove = remove;
  }

  /** Null where there is an obstacle. This process steps into a cgroup below its own until disposal. */
  static open(directory = ownCgroup(), remove: (path: string) => void = rmdirSync): VmCgroups | null {
    if (directory === null || cgroupObstacle(directory) !== null) return null;
    const cgroups = new VmCgroups(directory, remove);
    try {
      mkdirSync(cgroups.#serverPath);
      writeFileSync(join(cgroups.#serverPath, "cgroup.procs"), String(process.pid));
      cgroups.#switchControllers("+");
      return cgroups;
    } catch {
      // Without a cgroup a VM is as it is on most machines; a half-made one would be in the way.
      cgroups[Symbol.dispose]();
      return null;
    }
  }

  /** A cgroup for one VM. Its owner disposes of it when the VM's process is gone. Throws `clone_failed`. */
  create(size: VmSize): VmCgroup {
    const path = join(this.#directory, `vm-${this.#nextVm++}`);
    try {
      mkdirSync(path);
      this.#vms.add(path);
      for (const controller of this.#controllers) {
        const [name, value] = limitOf(controller, size);
        writeFileSync(join(path, name), value);
      }
    } catch (error) {
      this.#discard(path);
      throw new VmError(
        "clone_failed",
        `the limits of a VM could not be set in ${path}: ${(error as Error).message}. Start the server outside of a delegated cgroup`,
        error,
      );
    }
    return new VmCgroup(path, () => this.#discard(path));
  }

  [Symbol.dispose](): void {
    for (const path of [...this.#vms]) this.#discard(path);
    // Each step is tried: what is left ends with the cgroup this server was given.
    attempt(() => this.#switchControllers("-"));
    attempt(() => writeFileSync(join(this.#directory, "cgroup.procs"), String(process.pid)));
    attempt(() => this.#remove(this.#serverPath));
  }

  get #serverPath(): string {
    return join(this.#directory, "server");
  }

  #switchControllers(sign: "+" | "-"): void {
    const wanted = this.#controllers.map((name) => `${sign}${name}`).join(" ");
    writeFileSync(join(this.#directory, "cgroup.subtree_control"), wanted);
  }

  /** One whose process is not quite gone is tried again at the end. */
  #discard(path: string): void {
    if (attempt(() => this.#remove(path)) === null) this.#vms.delete(path);
  }
}

/** One VM's. */
export class VmCgroup implements Disposable {
  readonly path: string;
  readonly #discard: () => void;

  constructor(path: string, discard: () => void) {
    this.path = path;
    this.#discard = discard;
  }

  /** Threads come along, and memory counts from here on. */
  enter(pid: number): void {
    writeFileSync(join(this.path, "cgroup.procs"), String(pid));
  }

  [Symbol.dispose](): void {
    this.#discard();
  }
}

/** File and value */
function limitOf(controller: Controller, { memoryBytes, cpus }: VmSize): [string, string] {
  switch (controller) {
    case "memory":
      return ["memory.max", String(memoryBytes + OVERHEAD_BYTES)];
    case "pids":
      return ["pids.max", String(MAX_THREADS)];
    case "cpu":
      return ["cpu.max", `${cpus * CPU_PERIOD_US} ${CPU_PERIOD_US}`];
  }
}

function controllersIn(directory: string): Controller[] {
  const present = readFileSync(join(directory, "cgroup.controllers"), "utf8").trim().split(" ");
  return CONTROLLERS.filter((name) => present.includes(name));
}

/** The code of the error `step` ends with, or null. Anything that is not the system's answer is thrown. */
function attempt(step: () => void): string | null {
  try {
    step();
    return null;
  } catch (error) {
    return codeOf(error);
  }
}

function codeOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) throw error;
  return code;
}
