import { once } from "node:events";
import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { Duplex } from "node:stream";
import { sha256OfFile } from "../../src/base/file-hash.ts";
import { identityOf } from "../../src/base/process-identity.ts";
import type { Machine, MachinePlace, MachineSource, Machines } from "../../src/engine/vms/machine.ts";
import type { MachineCopier } from "../../src/engine/vms/machine-copier.ts";
import type { MachineRecord } from "../../src/engine/vms/vm-record.ts";
import { AgentError } from "../../src/guest/agent-error.ts";
import type { RunCommand, RunHandle } from "../../src/guest/run-handle.ts";
import type { TunnelHandler } from "../../src/guest/serve-tunnels.ts";
import type { FileContent, GetRange } from "../../src/guest/transfer-file.ts";
import type { Tunnel } from "../../src/guest/tunnel.ts";
import type { SealedFile } from "../../src/vm/file-seal.ts";
import type { VmDeath } from "../../src/vm/vm-death.ts";
import { VmError } from "../../src/vm/vm-error.ts";
import { FakeMemory } from "./fake-memory.ts";
import { startHostRun } from "./host-run.ts";

const ROOTFS = "root file system of all machines";

/** What a machine without a guest makes of a command. */
export type StartFakeRun = typeof startHostRun;

/** Machines without guests: each is a directory, in which commands run on this machine unless `startRun` says otherwise. */
export class FakeMachines implements Machines {
  readonly root: string;
  readonly #startRun: StartFakeRun;
  /** Of every machine that was made or adopted, by its sockets' directory */
  readonly running = new Map<string, FakeMachine>();
  readonly cleared: string[] = [];
  /** Thrown by the next start */
  failure: Error | null = null;
  /** Called at each adoption; what it throws or rejects with fails it */
  onAdopt: (socketDir: string) => void | Promise<void> = () => undefined;
  /** Why none can be adopted */
  groundFailure: Error | null = null;
  /** Called at each start; what it throws fails the start */
  onStart: () => void = () => undefined;
  /** Awaited by each start */
  gate: Promise<void> = Promise.resolve();

  constructor(root: string, startRun: StartFakeRun = startHostRun) {
    this.root = root;
    this.#startRun = startRun;
  }

  socketDirFor(vmId: string): string {
    return join(this.root, vmId);
  }

  async requireGround(): Promise<void> {
    if (this.groundFailure) throw this.groundFailure;
  }

  async start(source: MachineSource, place: MachinePlace, signal: AbortSignal): Promise<Machine> {
    this.onStart();
    await this.gate;
    signal.throwIfAborted();
    const { failure } = this;
    this.failure = null;
    if (failure) throw failure;
    mkdirSync(place.socketDir, { recursive: true });
    const memory = await this.#memoryOf(source);
    return this.#add(place.socketDir, recordOf(source, memory), memory);
  }

  async adopt(known: MachineRecord, place: MachinePlace): Promise<Machine> {
    await this.onAdopt(place.socketDir);
    if (!existsSync(place.socketDir)) throw new Error("its process is gone");
    const { storePath, name } = known.origin;
    const source = {
      storePath,
      name,
      cpus: 1,
      memoryBytes: 0,
      isBuildable: known.origin.manifest.kind === "base",
    };
    return this.#add(place.socketDir, known, await this.#memoryOf(source));
  }

  async clear(_vmm: unknown, socketDir: string): Promise<void> {
    this.cleared.push(socketDir);
    rmSync(socketDir, { recursive: true, force: true });
  }

  async rootfs(): Promise<SealedFile> {
    const path = join(this.root, "rootfs.ext4");
    mkdirSync(this.root, { recursive: true });
    await writeFile(path, ROOTFS);
    return { path, bytes: ROOTFS.length, sha256: await sha256OfFile(path) };
  }

  /** The machine of a VM. */
  of(vmId: string): FakeMachine {
    const machine = this.running.get(this.socketDirFor(vmId));
    if (!machine) throw new Error(`${vmId} has no machine`);
    return machine;
  }

  /** A restored machine goes on with the memory of its snapshot. */
  async #memoryOf({ storePath, name, isBuildable }: MachineSource): Promise<FakeMemory> {
    const rootfs = await this.rootfs();
    if (isBuildable) return new FakeMemory(rootfs);
    return new FakeMemory(
      rootfs,
      new Uint8Array(await readFile(join(storePath, "snapshots", name, "memory.bin"))),
    );
  }

  #add(dir: string, record: MachineRecord, memory: FakeMemory): FakeMachine {
    const onEnd = () => this.running.delete(dir);
    const machine = new FakeMachine(dir, { record, memory, startRun: this.#startRun, onEnd });
    this.running.set(dir, machine);
    return machine;
  }
}

export class FakeMachine implements Machine {
  readonly record: MachineRecord;
  readonly memory: FakeMemory;
  readonly #dir: string;
  readonly #onEnd: () => void;
  readonly #startRun: StartFakeRun;
  readonly #death = Promise.withResolvers<VmDeath>();
  readonly #ending = new AbortController();
  isPaused = false;
  isDetached = false;
  /** Thrown by the next attempt to end it */
  endFailure: Error | null = null;
  /** False: the agent answers nothing any more */
  isAnswering = true;

  constructor(
    dir: string,
    of: { record: MachineRecord; memory: FakeMemory; startRun: StartFakeRun; onEnd: () => void },
  ) {
    this.#dir = dir;
    this.record = of.record;
    this.memory = of.memory;
    this.#startRun = of.startRun;
    this.#onEnd = of.onEnd;
  }

  get died(): Promise<VmDeath> {
    return this.#death.promise;
  }

  die(death: VmDeath): void {
    this.#death.resolve(death);
  }

  startRun(command: RunCommand, signal: AbortSignal): RunHandle {
    this.#mustAnswer();
    return this.#startRun(command, (path) => this.#hostPath(path), signal);
  }

  async putFile(path: string, content: Uint8Array): Promise<void> {
    this.#mustAnswer();
    const target = this.#hostPath(path);
    if (isDirectory(target)) throw refusal("is_directory");
    mkdirSync(dirname(target), { recursive: true });
    await writeFile(target, content);
  }

  async getFile(path: string, range: GetRange): Promise<FileContent> {
    this.#mustAnswer();
    const target = this.#hostPath(path);
    if (isDirectory(target)) throw refusal("is_directory");
    if (!existsSync(target)) throw refusal("not_found");
    const content = await readFile(target);
    return {
      content: content.subarray(range.offset, range.offset + range.limitBytes),
      fileBytes: content.length,
    };
  }

  async ping(): Promise<void> {
    this.#mustAnswer();
  }

  /** What the guest's connections would be given to; null without a proxy */
  proxy: TunnelHandler | null = null;

  async serveProxy(handler: TunnelHandler): Promise<void> {
    this.proxy = handler;
  }

  /** Connects to the same port of this machine. */
  async connectGuest(port: number): Promise<Tunnel> {
    this.#mustAnswer();
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    await once(socket, "connect");
    const streams = Duplex.toWeb(socket) as unknown as Pick<Tunnel, "readable" | "writable">;
    return { ...streams, abort: () => socket.resetAndDestroy() };
  }

  async pause(): Promise<void> {
    this.isPaused = true;
  }

  async resume(): Promise<void> {
    this.isPaused = false;
  }

  async copy<T>(
    work: (copier: MachineCopier, signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
    staysStill = false,
  ): Promise<T> {
    if (this.isPaused) throw new VmError("paused", "the VM is paused; resume it first");
    const copied = await work(this.memory, AbortSignal.any([signal, this.#ending.signal]));
    this.isPaused = staysStill;
    return copied;
  }

  usage(): { cpuMs: number; memoryBytes: number } {
    return { cpuMs: 1000, memoryBytes: 64 * 1_048_576 };
  }

  detach(): void {
    this.isDetached = true;
    this.#onEnd();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#onEnd();
    this.#ending.abort(new VmError("closed", "the VM was ended"));
    const { endFailure } = this;
    this.endFailure = null;
    if (endFailure) throw endFailure;
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #hostPath(path: string): string {
    const inside = join(this.#dir, path);
    if (!inside.startsWith(`${this.#dir}/`)) throw refusal("bad_path");
    return inside;
  }

  #mustAnswer(): void {
    if (!this.isAnswering) throw new AgentError("agent_lost", "the connection to the agent ended");
  }
}

function recordOf(source: MachineSource, { base }: FakeMemory): MachineRecord {
  const { storePath, name, isBuildable } = source;
  const manifest = {
    ...base.manifest,
    name,
    kind: isBuildable ? ("base" as const) : ("checkpoint" as const),
  };
  return {
    vmm: identityOf(process.pid)!,
    identity: { hostname: "fake", machineId: "0".repeat(32) },
    origin: { storePath, name, manifest },
  };
}

function refusal(code: string): AgentError {
  return new AgentError("agent_refused", `the agent refused the request: ${code}`, { refusal: code });
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
