import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Rng } from "../test/support/rng.ts";
import type { TestEngine } from "../test/support/test-engine.ts";
import { CheckedVm, expectEqual } from "./checked-vm.ts";
import { OperationTimes } from "./operation-times.ts";
import { WatchedWall } from "./watched-wall.ts";

const FILES = 8;
const FILE_BYTES = 262_144;
const LONGEST_POST = 2000;

export interface MixedLoad {
  vms: number;
  /** In which rounds are begun; each VM does one at least */
  seconds: number;
  seed: number;
}

export interface LoadResult {
  times: OperationTimes;
  posts: number;
  /** Answers that were wrong or did not come, in words */
  failures: string[];
}

/** Loads an engine with VMs that all do everything at once, checks every answer, and leaves nothing in it. */
export async function runMixedLoad(
  engine: TestEngine,
  { vms, seconds, seed }: MixedLoad,
): Promise<LoadResult> {
  const times = new OperationTimes();
  const roles = Array.from({ length: vms }, () => "worker");
  const made = await engine.post("/flocks", { task: "load", roles });
  if (made.status !== 201) throw new Error(`no flock: ${made.status} ${made.text}`);
  const { flock_id: id, agents } = made.json as {
    flock_id: string;
    agents: { agent_id: string; vm_id: string }[];
  };
  const failures: string[] = [];
  const failed = (who: string) => (error: unknown) => {
    failures.push(`${who}: ${error instanceof Error ? error.message : String(error)}`);
  };
  const deadline = performance.now() + seconds * 1000;
  {
    await using wall = await WatchedWall.watch(engine, id, times);
    const lanes = agents.map(({ agent_id, vm_id }, at) => {
      const lane = new Lane(new CheckedVm(engine, vm_id, times), agent_id, wall, new Rng(seed + at));
      return lane.run(deadline).catch(failed(agent_id));
    });
    await Promise.all(lanes);
    await wall.check().catch(failed("wall"));
    await expectEmptied(engine, id).catch(failed("the end"));
    return { times, posts: wall.count, failures };
  }
}

/** One VM, to which one thing after the other is done. */
class Lane {
  readonly #vm: CheckedVm;
  readonly #agentId: string;
  readonly #wall: WatchedWall;
  readonly #rng: Rng;
  #count = 0;

  constructor(vm: CheckedVm, agentId: string, wall: WatchedWall, rng: Rng) {
    this.#vm = vm;
    this.#agentId = agentId;
    this.#wall = wall;
    this.#rng = rng;
  }

  async run(deadline: number): Promise<void> {
    for (const work of this.#shuffledRound()) await work();
    while (performance.now() < deadline) {
      for (const work of this.#shuffledRound()) if (performance.now() < deadline) await work();
    }
    await this.#vm.checkContents();
  }

  #shuffledRound(): (() => Promise<void>)[] {
    const vm = this.#vm;
    const kinds: [number, () => Promise<void>][] = [
      [4, () => vm.tally(this.#word())],
      [1, () => vm.failingTask(1 + this.#rng.below(100))],
      [2, () => vm.streamedTask(this.#word())],
      [4, () => vm.copyIn(this.#file(), this.#content())],
      [4, () => vm.copyOut(this.#file())],
      [3, () => this.#wall.post(this.#agentId, this.#message())],
      [2, () => this.#postFromInside()],
      [1, () => this.#snapshots()],
    ];
    const round = kinds.flatMap(([times, work]) => Array.from({ length: times }, () => work));
    for (let last = round.length - 1; last > 0; last--) {
      const other = this.#rng.below(last + 1);
      [round[last], round[other]] = [round[other]!, round[last]!];
    }
    return round;
  }

  async #postFromInside(): Promise<void> {
    const body = this.#message();
    await this.#vm.postFromInside(body);
    this.#wall.acknowledged(this.#agentId, body);
  }

  /** A full one and a diff; a VM from either has what this one had then; whatever something stands on stays. */
  async #snapshots(): Promise<void> {
    const vm = this.#vm;
    const before = vm.contents;
    const full = await vm.snapshot("full");
    await vm.copyIn(this.#file(), this.#content());
    await vm.tally(this.#word());
    const between = vm.contents;
    const diff = await vm.snapshot("diff", full);
    await vm.tally(this.#word());
    const [chosen, contents] = this.#rng.oneIn(2) ? [full, before] : [diff, between];
    const copy = await vm.restored(chosen, contents);
    await copy.checkContents();
    await copy.tally(this.#word());
    await vm.deleteSnapshot(chosen, false);
    await copy.remove();
    await vm.deleteSnapshot(full, false);
    await vm.deleteSnapshot(diff, true);
    await vm.deleteSnapshot(full, true);
  }

  #file(): string {
    return `file-${this.#rng.below(FILES)}`;
  }

  #content(): Uint8Array {
    return this.#rng.bytes(this.#rng.below(FILE_BYTES));
  }

  #word(): string {
    return this.#rng.next().toString(36);
  }

  /** Unlike any other, and sometimes of many lines. */
  #message(): string {
    const lines = this.#word()
      .repeat(1 + this.#rng.below(LONGEST_POST / 10))
      .match(/.{1,60}/g)!;
    return `${this.#agentId} ${++this.#count}\n${lines.join("\n")}`;
  }
}

async function expectEmptied(engine: TestEngine, flockId: string): Promise<void> {
  expectEqual(
    "the status of the flock's end",
    (await engine.request("DELETE", `/flocks/${flockId}`)).status,
    200,
  );
  expectEqual("the VMs that are left", (await engine.get("/vms")).json, []);
  expectEqual("the snapshots that are left", (await engine.get("/snapshots")).json, []);
  for (const name of ["vms", "snapshots"])
    expectEqual(`the files that are left of ${name}`, readdirSync(join(engine.workDir, name)), []);
}
