import { createHash } from "node:crypto";
import type { EngineAnswer, TestEngine } from "../test/support/test-engine.ts";
import type { OperationTimes } from "./operation-times.ts";

/** For one answer, also of a snapshot that waits for seven others on two emulated processors */
const ANSWER_MS = 240_000;

interface Snapshot {
  snapshot_id: string;
  snapshot_type: string;
  base_snapshot_id?: string;
}

/** What a VM must have in it. */
interface Contents {
  files: ReadonlyMap<string, Uint8Array>;
  tallies: number;
}

/** A VM and what must be in it. Every call does one thing to it, times it, and throws when the answer is not the right one. */
export class CheckedVm {
  readonly id: string;
  readonly #engine: TestEngine;
  readonly #times: OperationTimes;
  readonly #files: Map<string, Uint8Array>;
  #tallies: number;

  constructor(engine: TestEngine, id: string, times: OperationTimes, contents?: Contents) {
    this.#engine = engine;
    this.id = id;
    this.#times = times;
    this.#files = new Map(contents?.files);
    this.#tallies = contents?.tallies ?? 0;
  }

  get contents(): Contents {
    return { files: new Map(this.#files), tallies: this.#tallies };
  }

  /** Adds a line to a file of the guest's, counts its lines, and hashes a text. */
  async tally(text: string): Promise<void> {
    const prompt = `echo >>/root/tally; wc -l </root/tally; printf %s '${text}' | sha256sum`;
    const expected = `${++this.#tallies}\n${sha256(text)}  -\n`;
    await this.#times.time("task", async () =>
      expectSame(await this.#task(prompt), { output: expected }, 200),
    );
  }

  async failingTask(status: number): Promise<void> {
    const failed = { output: "half\n", error: `exit status ${status}: no luck` };
    await this.#times.time("task that fails", async () =>
      expectSame(await this.#task(`echo half; echo no luck >&2; exit ${status}`), failed, 500),
    );
  }

  async streamedTask(text: string): Promise<void> {
    await this.#times.time("task, streamed", async () => {
      const path = `/vms/${this.id}/tasks?stream=1`;
      const answer = await this.#ask("POST", path, { prompt: `for i in 1 2 3; do echo $i ${text}; done` });
      const frames = answer.text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as { type: string; text?: string; output?: string });
      const told = frames.map(({ text = "" }) => text).join("");
      const output = `1 ${text}\n2 ${text}\n3 ${text}\n`;
      expectEqual("the result", frames.at(-1), { type: "result", output });
      expectEqual("what was told before it", told, output);
    });
  }

  async copyIn(name: string, content: Uint8Array): Promise<void> {
    await this.#times.time("copy in", async () => {
      const answer = await this.#raw("PUT", `/vms/${this.id}/workspace?path=${name}&overwrite=true`, {
        body: content,
      });
      expectSame(answer, { path: name, bytes: content.byteLength }, 200);
    });
    this.#files.set(name, content);
  }

  async copyOut(name: string): Promise<void> {
    const content = this.#files.get(name);
    const path = `/vms/${this.id}/workspace?path=${name}`;
    await this.#times.time("copy out", async () => {
      const response = await this.#engine.fetch("GET", path, { signal: AbortSignal.timeout(ANSWER_MS) });
      const bytes = await response.bytes();
      expectEqual(`the status of ${name}`, response.status, content === undefined ? 404 : 200);
      if (content && !Buffer.from(bytes).equals(content))
        throw new Error(`${name} came out with other content`);
    });
  }

  /** From inside, under the VM's own name. */
  async postFromInside(body: string): Promise<void> {
    await this.#times.time("wall post from the guest", async () => {
      expectEqual("its status", (await this.#task(`gtwall '${body}'`)).status, 200);
    });
  }

  /** Every file and every tally, seen from the guest. */
  async checkContents(): Promise<void> {
    const names = [...this.#files.keys()].sort();
    const sums = names.map((name) => `${sha256(this.#files.get(name)!)}  ${name}\n`).join("");
    const tallies = this.#tallies === 0 ? "" : "wc -l </root/tally;";
    const list = names.length === 0 ? "" : `sha256sum ${names.join(" ")}`;
    const answer = await this.#task(`${tallies} ls -A; ${list}`);
    const listed = names.map((name) => `${name}\n`).join("");
    expectSame(answer, { output: `${tallies === "" ? "" : `${this.#tallies}\n`}${listed}${sums}` }, 200);
  }

  /** While a task runs, which must not notice. */
  async snapshot(type: "full" | "diff", base?: string): Promise<string> {
    const beside = this.#task("sleep 0.2; echo undisturbed");
    const taken = await this.#times.time(`${type} snapshot`, () =>
      this.#ask("POST", `/vms/${this.id}/snapshot`, { type }),
    );
    expectSame(await beside, { output: "undisturbed\n" }, 200);
    expectEqual(
      "the status of the snapshot",
      [taken.status, taken.text.slice(0, 200 * Number(taken.status !== 201))],
      [201, ""],
    );
    const { snapshot_id, snapshot_type, base_snapshot_id } = taken.json as Snapshot;
    expectEqual("the snapshot", [snapshot_type, base_snapshot_id], [type, base]);
    return snapshot_id;
  }

  /** A VM that goes on from a snapshot, and must have what its source had then. */
  async restored(snapshotId: string, contents: Contents): Promise<CheckedVm> {
    const answer = await this.#times.time("restore", () =>
      this.#ask("POST", `/snapshots/${snapshotId}/restore`, {}),
    );
    if (answer.status !== 201) throw new Error(`not restored: ${answer.status} ${answer.text}`);
    const { vm_id: id } = answer.json as { vm_id: string };
    return new CheckedVm(this.#engine, id, this.#times, contents);
  }

  async remove(): Promise<void> {
    await this.#times.time("delete a VM", async () => {
      expectSame(await this.#ask("DELETE", `/vms/${this.id}`), { status: "stopped", vm_id: this.id }, 200);
    });
    expectEqual("the status of a deleted VM", (await this.#ask("GET", `/vms/${this.id}/health`)).status, 404);
  }

  /** `isFree`: nothing stands on it, so that it goes. */
  async deleteSnapshot(id: string, isFree: boolean): Promise<void> {
    const remove = () => this.#ask("DELETE", `/snapshots/${id}`);
    if (isFree)
      await this.#times.time("delete a snapshot", async () =>
        expectSame(await remove(), { status: "deleted", snapshot_id: id }, 200),
      );
    else expectEqual("the status of a delete that must be refused", (await remove()).status, 409);
  }

  #task(prompt: string): Promise<EngineAnswer> {
    return this.#ask("POST", `/vms/${this.id}/tasks`, { prompt });
  }

  #ask(method: string, path: string, body?: object): Promise<EngineAnswer> {
    if (body === undefined) return this.#raw(method, path);
    const headers = { "content-type": "application/json" };
    return this.#raw(method, path, { body: JSON.stringify(body), headers });
  }

  #raw(method: string, path: string, init: RequestInit = {}): Promise<EngineAnswer> {
    return this.#engine.request(method, path, { ...init, signal: AbortSignal.timeout(ANSWER_MS) });
  }
}

function sha256(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

function expectSame(answer: EngineAnswer, body: object, status: number): void {
  expectEqual("the answer", [answer.status, answer.json ?? answer.text], [status, body]);
}

export function expectEqual(what: string, actual: unknown, expected: unknown): void {
  if (Bun.deepEquals(actual, expected)) return;
  throw new Error(
    `${what}: ${JSON.stringify(actual)?.slice(0, 600)} instead of ${JSON.stringify(expected)?.slice(0, 600)}`,
  );
}
