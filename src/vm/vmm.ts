import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import type { Socket, Subprocess, UnixSocketListener } from "bun";
import { DeadlineError, within } from "../base/wait.ts";
import { ByteTail } from "./byte-tail.ts";
import { refuseHugePages } from "./huge-pages.ts";
import { CONSOLE_SOCKET, QMP_SOCKET } from "./machine-spec.ts";
import { Qmp } from "./qemu/qmp.ts";
import type { VmCgroup } from "./vm-cgroups.ts";
import { VM_DEADLINES } from "./vm-deadlines.ts";
import { VmError } from "./vm-error.ts";

const CONSOLE_TAIL_BYTES = 16_384;
const STDERR_TAIL_BYTES = 4096;
const LAST_WORDS_MS = 1000;
const KILL_DEADLINE_MS = 5000;
const SHELL_SIGNAL_BASE = 128;

/** How a VMM's process ended. At most one of the two is not null: of one that was started by another process it is not known. */
export interface VmmEnd {
  exitCode: number | null;
  signal: string | null;
}

/** What a VM needs of its VMM. Its disposal ends the VMM. */
export interface VmmHandle extends AsyncDisposable {
  readonly qmp: Qmp;
  /** The last of what the guest printed */
  readonly console: Pick<ByteTail, "text">;
  /** The last of what QEMU said */
  readonly stderr: Pick<ByteTail, "text">;
  /** Resolves when it is gone and all it said before has been read */
  readonly ended: Promise<VmmEnd>;
  /** Of QEMU itself */
  readonly pid: number;
}

/** A QEMU process, its QMP and its console. Owns its pid and sockets; the directory belongs to the caller. */
export class Vmm implements VmmHandle {
  readonly qmp: Qmp;
  readonly console = new ByteTail(CONSOLE_TAIL_BYTES);
  readonly stderr = new ByteTail(STDERR_TAIL_BYTES);
  readonly ended: Promise<VmmEnd>;
  readonly #child: Subprocess;
  readonly #listeners: UnixSocketListener<undefined>[];
  readonly #cgroup: VmCgroup | null;
  /** With what resolves when all that came through it has been read */
  readonly #sockets = new Map<Socket<undefined>, PromiseWithResolvers<void>>();
  #stderrDone: Promise<void> = Promise.resolve();
  #heldPid: number | null = null;
  #isEnding = false;

  private constructor(argv: string[], vmDir: string, commandMs: number, cgroup: VmCgroup | null) {
    this.#cgroup = cgroup;
    let qmpSocket: Socket<undefined> | null = null;
    this.qmp = new Qmp((line) => qmpSocket?.write(line), commandMs);
    this.#listeners = [
      this.#listen(
        join(vmDir, QMP_SOCKET),
        (bytes) => this.qmp.receive(bytes),
        (socket) => {
          qmpSocket = socket;
        },
      ),
      this.#listen(join(vmDir, CONSOLE_SOCKET), (bytes) => this.console.push(bytes)),
    ];
    const child = this.#spawn(argv);
    this.#child = child;
    this.#stderrDone = this.#collectStderr(child.stderr);
    this.ended = child.exited.then(async () => {
      await this.#readToEnd();
      const end = endOf(child.exitCode, child.signalCode);
      this.qmp.end(describeEnd(end));
      return end;
    });
  }

  /**
   * Starts QEMU and waits until it takes commands. Nothing is left when it rejects.
   * Owns the cgroup, which QEMU enters before its guest runs.
   */
  static async start(
    argv: string[],
    vmDir: string,
    signal?: AbortSignal,
    { greetingMs, commandMs } = VM_DEADLINES,
    cgroup: VmCgroup | null = null,
  ): Promise<Vmm> {
    const vmm = new Vmm(argv, vmDir, commandMs, cgroup);
    try {
      await vmm.qmp.open(greetingMs, signal);
      cgroup?.enter(vmm.pid);
      for (const listener of vmm.#listeners) listener.stop();
      return vmm;
    } catch (error) {
      await vmm[Symbol.asyncDispose]();
      signal?.throwIfAborted();
      throw new VmError("vmm_failed", `QEMU did not start: ${vmm.complaint(error as Error)}`, error);
    }
  }

  /** What we saw of a failure, and the last lines QEMU wrote to stderr, for a person. */
  complaint(seen: Error): string {
    const said = this.stderr.text().trim();
    return said === "" ? seen.message : `${seen.message}; it said: ${said}`;
  }

  /** Pid of QEMU itself, which under bubblewrap is not our child but our child's; for measuring. */
  get pid(): number {
    return innermostChild(this.#child.pid);
  }

  /**
   * Stops QEMU's process wherever it is in its work, and the time in its guest does not stop with it. Whatever waits for
   * it waits; it still ends when it is killed. Not the jail around it, which has to see its end.
   */
  hold(): void {
    if (this.#heldPid !== null || this.#isEnding || this.#hasEnded) return;
    this.#heldPid = this.pid;
    signalIfThere(this.#heldPid, "SIGSTOP");
  }

  /** Lets a QEMU that is held go on. */
  release(): void {
    if (this.#heldPid !== null && !this.#hasEnded) signalIfThere(this.#heldPid, "SIGCONT");
    this.#heldPid = null;
  }

  /** Kills QEMU and resolves when its process is gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnding = true;
    this.qmp.end("was ended");
    if (!this.#hasEnded) killTree(this.#child.pid);
    this.release();
    try {
      await within(this.ended, KILL_DEADLINE_MS, "QEMU's end");
    } catch (error) {
      if (!(error instanceof DeadlineError)) throw error;
      this.#child.kill("SIGKILL");
      await this.ended;
    } finally {
      for (const listener of this.#listeners) listener.stop(true);
      for (const socket of this.#sockets.keys()) socket.terminate();
      this.#cgroup?.[Symbol.dispose]();
    }
    await this.#stderrDone;
  }

  /** Afterwards its pid may be another process's. */
  get #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  #spawn(argv: string[]): Subprocess<"ignore", "ignore", "pipe"> {
    refuseHugePages();
    const stdio = { stdin: "ignore", stdout: "ignore", stderr: "pipe" } as const;
    try {
      // A detached child does not get the terminal's Ctrl-C, so the server can end it in order.
      return Bun.spawn(argv, { ...stdio, detached: true, env: {} });
    } catch (error) {
      for (const listener of this.#listeners) listener.stop(true);
      this.#cgroup?.[Symbol.dispose]();
      throw new VmError("vmm_failed", `${argv[0]} could not be started: ${(error as Error).message}`, error);
    }
  }

  #listen(
    path: string,
    onBytes: (bytes: Uint8Array) => void,
    onOpen?: (socket: Socket<undefined>) => void,
  ): UnixSocketListener<undefined> {
    return Bun.listen<undefined>({
      unix: path,
      socket: {
        open: (socket) => {
          this.#sockets.set(socket, Promise.withResolvers());
          onOpen?.(socket);
        },
        data: (_, bytes) => onBytes(bytes),
        close: (socket) => {
          this.#sockets.get(socket)?.resolve();
          this.#sockets.delete(socket);
        },
      },
    });
  }

  /** On a busy machine its end is known before the last of what it said, which is in the kernel's hands by then. */
  async #readToEnd(): Promise<void> {
    const closed = [...this.#sockets.values()].map(({ promise }) => promise);
    try {
      await within(Promise.all([...closed, this.#stderrDone]), LAST_WORDS_MS, "QEMU's last words");
    } catch (error) {
      // Its end does not depend on what it said.
      if (!(error instanceof DeadlineError)) throw error;
    }
  }

  async #collectStderr(stream: ReadableStream<Uint8Array>): Promise<void> {
    for await (const bytes of stream) this.stderr.push(bytes);
  }
}

/** Completes "QEMU …". */
export function describeEnd({ exitCode, signal }: VmmEnd): string {
  if (exitCode === null && signal === null) return "ended";
  return signal === null ? `exited (status ${exitCode})` : `was killed (${signal})`;
}

/** QEMU's own statuses are small; bubblewrap around it reports QEMU's end by signal N as status 128 + N. */
export function endOf(exitCode: number | null, signalCode: Subprocess["signalCode"]): VmmEnd {
  if (signalCode !== null) return { exitCode: null, signal: String(signalCode) };
  const number = (exitCode ?? 0) - SHELL_SIGNAL_BASE;
  const name = Object.entries(constants.signals).find(([, value]) => value === number)?.[0];
  return name === undefined ? { exitCode, signal: null } : { exitCode: null, signal: name };
}

/**
 * Kills QEMU rather than the bubblewrap around it: then bubblewrap's end means that QEMU is gone,
 * not merely that the kernel was asked to kill it.
 */
function killTree(pid: number): void {
  signalIfThere(innermostChild(pid), "SIGKILL");
}

function signalIfThere(pid: number, signal: "SIGKILL" | "SIGSTOP" | "SIGCONT"): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Pid of what runs inside jails and limits around it, themselves included in the chain of only children. */
export function innermostChild(pid: number): number {
  for (let current = pid; ; ) {
    const child = onlyChild(current);
    if (child === null) return current;
    current = child;
  }
}

function onlyChild(pid: number): number | null {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").trim();
    return children === "" ? null : Number(children.split(" ")[0]);
  } catch (error) {
    // The process is gone, or this system has no /proc: then the child itself is all we know.
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return null;
    throw error;
  }
}
