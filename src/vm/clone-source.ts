import { stat } from "node:fs/promises";
import type { Logger } from "../base/logger.ts";
import { within } from "../base/wait.ts";
import { baseNameFor } from "../config/base-name-for.ts";
import type { Config } from "../config/config.ts";
import { Activity } from "./activity.ts";
import { buildBase } from "./base-builder.ts";
import { checkpointMissing, isCheckpointId } from "./checkpoint-store.ts";
import { cloneBase } from "./clone-base.ts";
import { ClonePool } from "./clone-pool.ts";
import { hasRoomForSpareClone } from "./host-memory.ts";
import { findGround, type Ground, type OpenBase, openBase } from "./open-base.ts";
import { RefillHold } from "./refill-hold.ts";
import { RuntimeDirectory } from "./runtime-directory.ts";
import { serveEgress } from "./serve-egress.ts";
import type { Vm } from "./vm.ts";
import { VmCgroups } from "./vm-cgroups.ts";
import { VM_DEADLINES } from "./vm-deadlines.ts";
import { VmError } from "./vm-error.ts";

/** Longest a caller waits for a base that is being built; the build itself goes on */
const BASE_DEADLINE_MS = 600_000;
/** Longest a refill of the pool waits for a moment without calls */
const REFILL_WAIT_MS = 10_000;

export interface ClaimCall {
  signal: AbortSignal;
  progress?: (message: string) => void;
}

/** What its clones are made with. */
export interface CloneMeans {
  findGround: typeof findGround;
  openBase: typeof openBase;
  cloneBase: typeof cloneBase;
  openCgroups(): VmCgroups | null;
}

const MEANS: CloneMeans = {
  findGround,
  openBase,
  cloneBase,
  openCgroups: () => (process.platform === "linux" ? VmCgroups.open() : null),
};

interface Supply {
  base: OpenBase;
  /** Changes whenever the base on disk is replaced */
  baseMark: string;
}

/**
 * Where sessions get their clones: from the pool, else restored at once. The base is opened, or built, at the first
 * claim; before that nothing exists.
 */
export class CloneSource implements AsyncDisposable {
  readonly #config: Config;
  readonly #log: Logger;
  readonly #means: CloneMeans;
  readonly #listeners = new Set<(message: string) => void>();
  readonly #lifetime = new AbortController();
  readonly #activity = new Activity();
  readonly #pool: ClonePool<Vm>;
  /** Which base a pooled clone is of */
  readonly #baseMarks = new WeakMap<Vm, string>();
  #runtime: RuntimeDirectory | null = null;
  /** Undefined before the ground was found, null where there are none */
  #cgroups: VmCgroups | null | undefined;
  #supply: Promise<Supply> | null = null;

  constructor(config: Config, log: Logger, means = MEANS) {
    this.#config = config;
    this.#log = log;
    this.#means = means;
    this.#pool = new ClonePool({ size: config.poolSize, prepare: (signal) => this.#prepare(signal), log });
  }

  /** A clone that is awake and answered its probe. The caller owns it. Rejects with nothing left behind. */
  async claim(call: ClaimCall): Promise<Vm> {
    using _call = this.#activity.begin();
    const { base, baseMark } = await this.#ready(call);
    const signal = AbortSignal.any([call.signal, this.#lifetime.signal]);
    const vm =
      (await this.#claimPooled(baseMark, signal)) ?? (await this.#cloneAwake(base, signal, call.progress));
    await this.#handOut(vm);
    this.#pool.fill();
    return vm;
  }

  /** A clone of a checkpoint, as `claim` gives one of the base. Rejects with `checkpoint_missing` for an unknown id. */
  async fork(checkpointId: string, call: ClaimCall): Promise<Vm> {
    using _call = this.#activity.begin();
    const signal = AbortSignal.any([call.signal, this.#lifetime.signal]);
    signal.throwIfAborted();
    if (!isCheckpointId(checkpointId)) throw checkpointMissing(checkpointId);
    const base = await this.#means.openBase(this.#config, await this.#ground(), checkpointId, signal);
    if (!base) throw checkpointMissing(checkpointId);
    const vm = await this.#cloneAwake(base, signal, call.progress);
    await this.#handOut(vm);
    return vm;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#lifetime.abort(new VmError("closed", "the server is shutting down"));
    await this.#pool[Symbol.asyncDispose]();
    await this.#supply?.catch(() => undefined);
    this.#runtime?.[Symbol.dispose]();
    this.#cgroups?.[Symbol.dispose]();
  }

  /** Its egress begins before anything runs in it. */
  async #handOut(vm: Vm): Promise<void> {
    try {
      await serveEgress(vm, this.#config.egress, this.#log);
      vm.countCallsIn(this.#activity);
      vm.exerciseSoon();
    } catch (error) {
      await vm[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Clones of a base that was replaced meanwhile are not given out. */
  async #claimPooled(baseMark: string, signal: AbortSignal): Promise<Vm | null> {
    const vm = this.#pool.take((candidate) => this.#baseMarks.get(candidate) === baseMark);
    if (!vm) return null;
    try {
      await vm.awaken(signal);
      return vm;
    } catch (error) {
      await vm[Symbol.asyncDispose]();
      signal.throwIfAborted();
      this.#log.warn({ error: String(error) }, "a pooled clone did not wake; a fresh one takes its place");
      return null;
    }
  }

  async #cloneAwake(base: OpenBase, signal: AbortSignal, progress?: (message: string) => void): Promise<Vm> {
    progress?.("cloning the base");
    const vm = await this.#clone(base, signal);
    try {
      progress?.("waking the clone");
      await vm.awaken(signal);
      return vm;
    } catch (error) {
      await vm[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Starts when no call is in flight and gives way to those that come, since nobody asked for this clone yet. */
  async #prepare(signal: AbortSignal): Promise<Vm> {
    await this.#activity.quiet(REFILL_WAIT_MS, signal);
    if (!hasRoomForSpareClone(this.#config.memoryBytes)) {
      throw new VmError(
        "memory_short",
        "this machine is short of memory: no clone is kept ready until that changes",
      );
    }
    const { base, baseMark } = await this.#ready({ signal });
    using hold = new RefillHold(this.#activity);
    const vm = await this.#clone(base, signal, hold);
    this.#baseMarks.set(vm, baseMark);
    try {
      await vm.exerciseAndPause(signal);
      return vm;
    } catch (error) {
      await vm[Symbol.asyncDispose]();
      throw error;
    }
  }

  #clone(base: OpenBase, signal: AbortSignal, hold: RefillHold | null = null): Promise<Vm> {
    this.#runtime ??= RuntimeDirectory.open();
    return this.#means.cloneBase(base, this.#runtime, signal, VM_DEADLINES, this.#cgroups, hold);
  }

  /**
   * Every way to a VM leads through here. The first one says what the jail lacks, and opens the cgroups: later there
   * would be a VM in this server's own, which then could have none below it.
   */
  async #ground(): Promise<Ground> {
    const ground = await this.#means.findGround(this.#config);
    if (this.#cgroups !== undefined) return ground;
    this.#cgroups = this.#means.openCgroups();
    const { kind, gaps } = ground.jail;
    if (gaps.length > 0)
      this.#log.warn({ jail: kind }, `VMMs are confined less than they could be: ${gaps.join("; ")}`);
    return ground;
  }

  /** One caller that gives up does not stop the base for the others. */
  async #ready({ signal, progress }: ClaimCall): Promise<Supply> {
    if (progress) this.#listeners.add(progress);
    try {
      const present = this.#supply;
      const supply = present && (await within(present, BASE_DEADLINE_MS, "the base", signal));
      // Another caller may have replaced it during the wait.
      if (supply && (await this.#isStale(supply)) && this.#supply === present) this.#supply = null;
      this.#supply ??= this.#openOrBuild().catch((error) => {
        this.#supply = null;
        throw error;
      });
      return await within(this.#supply, BASE_DEADLINE_MS, "the base", signal);
    } finally {
      if (progress) this.#listeners.delete(progress);
    }
  }

  async #isStale({ base, baseMark }: Supply): Promise<boolean> {
    return (await markOf(base.paths.manifestPath)) !== baseMark;
  }

  async #openOrBuild(): Promise<Supply> {
    const name = baseNameFor(this.#config);
    const ground = await this.#ground();
    const signal = this.#lifetime.signal;
    const base =
      (await this.#means.openBase(this.#config, ground, name, signal)) ??
      (await buildBase(this.#config, {
        name,
        force: false,
        signal,
        progress: (message) => this.#report(message),
      }));
    return { base, baseMark: await markOf(base.paths.manifestPath) };
  }

  #report(message: string): void {
    this.#log.info({ base: baseNameFor(this.#config) }, message);
    for (const listener of this.#listeners) listener(`building the base: ${message}`);
  }
}

async function markOf(path: string): Promise<string> {
  try {
    const { ino, mtimeNs } = await stat(path, { bigint: true });
    return `${ino}:${mtimeNs}`;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "gone";
    throw error;
  }
}
