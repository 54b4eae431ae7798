import { closeSync, constants, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Socket, Subprocess } from "bun";
import { identityOf, isAlive, type ProcessIdentity } from "../base/process-identity.ts";
import { connectToSocketFile } from "../base/socket-file.ts";
import { DeadlineError, sleep, within } from "../base/wait.ts";
import { ByteTail } from "./byte-tail.ts";
import { refuseHugePages } from "./huge-pages.ts";
import { CONSOLE_SOCKET, QMP_SOCKET } from "./machine-spec.ts";
import { Qmp } from "./qemu/qmp.ts";
import { VM_DEADLINES } from "./vm-deadlines.ts";
import { VmError } from "./vm-error.ts";
import { endOf, innermostChild, type VmmEnd, type VmmHandle } from "./vmm.ts";

const CONSOLE_TAIL_BYTES = 16_384;
const STDERR_TAIL_BYTES = 4096;
const RETRY_MS = 20;
/** How often a VMM that is not our child is looked for */
const WATCH_MS = 250;
const KILL_DEADLINE_MS = 5000;

/** Where a VMM that outlives its owner is found again. */
export interface LastingPlace {
  /** Its sockets; the only directory it may write */
  socketDir: string;
  /** What it writes to stderr */
  logPath: string;
}

/**
 * A QEMU process that goes on when this process ends. It listens on its sockets, so that one owner after another can
 * connect. Disposal ends it, `detach` does not.
 */
export class LastingVmm implements VmmHandle {
  readonly qmp: Qmp;
  readonly console = new ByteTail(CONSOLE_TAIL_BYTES);
  readonly stderr: { text(): string };
  readonly ended: Promise<VmmEnd>;
  /** QEMU's own, not that of the jail around it */
  readonly identity: ProcessIdentity;
  readonly #sockets: Socket<undefined>[];
  readonly #watching: AbortController;

  private constructor(
    link: QmpLink,
    identity: ProcessIdentity,
    ended: Promise<VmmEnd>,
    watching: AbortController,
    logPath: string,
  ) {
    this.stderr = { text: () => logTail(logPath) };
    this.qmp = link.qmp;
    this.#sockets = [link.socket];
    this.identity = identity;
    this.#watching = watching;
    this.ended = ended.then((end) => {
      this.qmp.end("ended");
      return end;
    });
    this.ended.catch(() => undefined);
  }

  /** Starts QEMU and waits until it takes commands. Nothing is left when it rejects. */
  static async start(
    argv: string[],
    place: LastingPlace,
    signal: AbortSignal,
    { greetingMs, commandMs } = VM_DEADLINES,
  ): Promise<LastingVmm> {
    const child = spawn(argv, place.logPath);
    const exited = child.exited.then(() => endOf(child.exitCode, child.signalCode));
    let link: QmpLink | null = null;
    try {
      link = await connectQmp(place.socketDir, greetingMs, commandMs, signal, exited);
      const identity = identityOf(innermostChild(child.pid));
      if (identity === null) throw new VmError("vmm_failed", "QEMU ended as soon as it had started");
      const vmm = new LastingVmm(link, identity, exited, new AbortController(), place.logPath);
      await vmm.#openConsole(place.socketDir);
      return vmm;
    } catch (error) {
      link?.socket.terminate();
      kill(innermostChild(child.pid));
      await exited;
      signal.throwIfAborted();
      const said = logTail(place.logPath);
      const seen = (error as Error).message;
      throw new VmError(
        "vmm_failed",
        `QEMU did not start: ${said === "" ? seen : `${seen}; it said: ${said}`}`,
        error,
      );
    }
  }

  /** Connects to one that an earlier process started. It is left as it is when this rejects. */
  static async adopt(
    identity: ProcessIdentity,
    place: LastingPlace,
    signal: AbortSignal,
    { connectMs, commandMs } = VM_DEADLINES,
  ): Promise<LastingVmm> {
    const watching = new AbortController();
    const ended = untilGone(identity, watching.signal);
    try {
      const link = await connectQmp(place.socketDir, connectMs, commandMs, signal, ended);
      const vmm = new LastingVmm(link, identity, ended, watching, place.logPath);
      await vmm.#openConsole(place.socketDir);
      return vmm;
    } catch (error) {
      watching.abort();
      throw error;
    }
  }

  get pid(): number {
    return pidOf(this.identity);
  }

  /** Lets go of it; whoever knows its place and identity can adopt it. */
  detach(): void {
    this.#watching.abort();
    this.qmp.end("was let go");
    for (const socket of this.#sockets) socket.terminate();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.qmp.end("was ended");
    await endVmm(this.identity);
    await within(this.ended, KILL_DEADLINE_MS, "QEMU's end");
    this.detach();
  }

  async #openConsole(socketDir: string): Promise<void> {
    const path = join(socketDir, CONSOLE_SOCKET);
    this.#sockets.push(await connectSocket(path, (bytes) => this.console.push(bytes)));
  }
}

interface QmpLink {
  qmp: Qmp;
  socket: Socket<undefined>;
}

/** Kills it, if it is still the process it was, and waits until it is gone. */
export async function endVmm(identity: ProcessIdentity): Promise<void> {
  if (isAlive(identity)) kill(pidOf(identity));
  const deadline = performance.now() + KILL_DEADLINE_MS;
  while (isAlive(identity)) {
    if (performance.now() > deadline) throw new DeadlineError("QEMU's end", KILL_DEADLINE_MS);
    await sleep(RETRY_MS);
  }
}

/** A file takes what QEMU says, since a pipe would end with us. */
function spawn(argv: string[], logPath: string): Subprocess {
  refuseHugePages();
  let log: number | null = null;
  try {
    log = openSync(logPath, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND, 0o600);
    const child = Bun.spawn(argv, {
      stdin: "ignore",
      stdout: "ignore",
      stderr: log,
      detached: true,
      env: {},
    });
    child.unref();
    return child;
  } catch (error) {
    throw new VmError("vmm_failed", `${argv[0]} could not be started: ${(error as Error).message}`, error);
  } finally {
    if (log !== null) closeSync(log);
  }
}

/** Tries until QEMU listens, and until it greets. */
async function connectQmp(
  socketDir: string,
  deadlineMs: number,
  commandMs: number,
  signal: AbortSignal,
  ended: Promise<VmmEnd>,
): Promise<QmpLink> {
  const over = new AbortController();
  const until = AbortSignal.any([signal, over.signal, AbortSignal.timeout(deadlineMs)]);
  ended.then(
    () => over.abort(new VmError("vmm_failed", "QEMU ended before it took commands")),
    () => undefined,
  );
  for (;;) {
    until.throwIfAborted();
    let socket: Socket<undefined> | null = null;
    const qmp: Qmp = new Qmp((line) => socket?.write(line), commandMs);
    try {
      socket = await connectSocket(
        join(socketDir, QMP_SOCKET),
        (bytes) => qmp.receive(bytes),
        () => qmp.end("closed its monitor"),
      );
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ELOOP") throw error;
      // It does not listen yet, or no more: its end and the deadline say which.
      await sleep(RETRY_MS, until);
      continue;
    }
    try {
      await qmp.open(deadlineMs, until);
      return { qmp, socket };
    } catch (error) {
      socket.terminate();
      throw error;
    }
  }
}

function connectSocket(
  path: string,
  onBytes: (bytes: Uint8Array) => void,
  onClose: () => void = () => undefined,
): Promise<Socket<undefined>> {
  return connectToSocketFile(path, (unix) =>
    Bun.connect<undefined>({
      unix,
      socket: { data: (_, bytes) => onBytes(bytes), close: onClose, error: onClose },
    }),
  );
}

/** Settles when it is gone; never for one that was let go before. How it ended is told to its parent only. */
function untilGone(identity: ProcessIdentity, letGo: AbortSignal): Promise<VmmEnd> {
  return new Promise((resolve) => {
    const look = () => {
      if (isAlive(identity)) return;
      clearInterval(timer);
      resolve({ exitCode: null, signal: null });
    };
    const timer = setInterval(look, WATCH_MS);
    look();
    letGo.addEventListener("abort", () => clearInterval(timer), { once: true });
  });
}

function pidOf(identity: ProcessIdentity): number {
  return Number(identity.split("-")[0]);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Latin-1, as a `ByteTail`. Empty when the file is gone: its VM's owner may remove it first. */
function logTail(path: string): string {
  try {
    return readFileSync(path, "latin1").slice(-STDERR_TAIL_BYTES).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}
