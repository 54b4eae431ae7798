import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { VmSource } from "../../../src/session/vm-source.ts";
import { cloneBase } from "../../../src/vm/clone-base.ts";
import type { OpenBase } from "../../../src/vm/open-base.ts";
import { RuntimeDirectory } from "../../../src/vm/runtime-directory.ts";
import type { Vm } from "../../../src/vm/vm.ts";
import type { VmDeadlines } from "../../../src/vm/vm-deadlines.ts";
import type { FakeQemuOptions } from "../../fake-vmm/fake-qemu.ts";
import { descendantsOf, mentionsPath } from "../../support/processes.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

const PROGRAM_PATH = resolve(import.meta.dir, "../../fake-vmm/fake-qemu.ts");

/** Long enough for whoever answers at all, however busy the machine. Waits whose end a test is to see are given by it. */
const AMPLE: VmDeadlines = {
  greetingMs: 60_000,
  commandMs: 60_000,
  restoreMs: 60_000,
  connectMs: 60_000,
  clonedMs: 60_000,
  probeMs: 60_000,
  exitGraceMs: 60_000,
  transferMs: 60_000,
};

/** Clones of a base that is not there, by a QEMU that is a fake and does as the test says. */
export class FaultySource implements VmSource {
  readonly #directory = new TemporaryDirectory();
  readonly #runtime: RuntimeDirectory;
  #deadlines: VmDeadlines = AMPLE;
  readonly #base: OpenBase;

  constructor() {
    mkdirSync(this.#directory.join("bin"));
    this.#runtime = RuntimeDirectory.open([this.#directory.join("run")]);
    this.#base = this.#fakeBase();
    this.next({});
  }

  /** What the clones do that are claimed from now on; `deadlines` are the waits whose end the test is about to see. */
  next(options: FakeQemuOptions, deadlines: Partial<VmDeadlines> = {}): void {
    this.#deadlines = { ...AMPLE, ...deadlines };
    writeFileSync(this.#directory.join("bin", "options.json"), JSON.stringify(options));
  }

  get runtimePath(): string {
    return this.#directory.join("run");
  }

  /** Pids of the processes that play its VMMs now. */
  vmms(): number[] {
    const { path } = this.#directory;
    return descendantsOf(process.pid)
      .map((info) => info.pid)
      .filter((pid) => mentionsPath(pid, path));
  }

  async claim({ signal }: { signal: AbortSignal }): Promise<Vm> {
    const vm = await cloneBase(this.#base, this.#runtime, signal, this.#deadlines);
    try {
      await vm.awaken(signal);
      return vm;
    } catch (error) {
      await vm[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** There is no checkpoint here: a fork is one more clone. */
  fork(_checkpointId: string, call: { signal: AbortSignal }): Promise<Vm> {
    return this.claim(call);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#runtime[Symbol.dispose]();
  }

  /** Removes the fake itself, once its table is gone. */
  removeFiles(): void {
    this.#directory[Symbol.dispose]();
  }

  #fakeBase(): OpenBase {
    const path = this.#directory.join("bin", "qemu");
    writeFileSync(path, wrapper());
    chmodSync(path, 0o700);
    const dir = this.#directory.join("base");
    const inBase = (name: string) => this.#directory.join("base", name);
    return {
      name: "fake",
      qemu: { path, version: "10.0.2", prefix: "/usr" },
      jail: { kind: "none", gaps: [], argv: () => [] },
      paths: {
        dir,
        memoryPath: inBase("memory.bin"),
        statePath: inBase("state.bin"),
        manifestPath: inBase("manifest.json"),
        sealPath: inBase("verified.json"),
        lockPath: inBase("lock"),
      },
      manifest: { agentBuild: "b0" } as OpenBase["manifest"],
      image: { rootfsPath: "/dev/null" } as OpenBase["image"],
      spec: { acceleration: "tcg", memoryBytes: 1_048_576, cpus: 1, net: false, rootfsPath: "/dev/null" },
    };
  }
}

/** Finds the VM's directory among QEMU's arguments and becomes the fake. */
function wrapper(): string {
  return `#!/bin/sh
for argument; do
  case $argument in socket,id=qmp,path=*) socket=\${argument#socket,id=qmp,path=} ;; esac
done
exec '${process.execPath}' '${PROGRAM_PATH}' "\${socket%/*}" "$(/bin/cat "\${0%/*}/options.json")"
`;
}
