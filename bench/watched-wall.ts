import type { TestEngine } from "../test/support/test-engine.ts";
import { expectEqual } from "./checked-vm.ts";
import type { OperationTimes } from "./operation-times.ts";

const CATCH_UP_MS = 30_000;

interface Message {
  seq: number;
  agent_id: string;
  body: string;
}

/** The wall of a flock, everything that was posted on it, and a reader that follows it all the time. */
export class WatchedWall implements AsyncDisposable {
  readonly #engine: TestEngine;
  readonly #flockId: string;
  readonly #times: OperationTimes;
  readonly #posted = new Map<string, string[]>();
  readonly #seen: Message[] = [];
  readonly #stop = new AbortController();
  #reading: Promise<void> = Promise.resolve();

  private constructor(engine: TestEngine, flockId: string, times: OperationTimes) {
    this.#engine = engine;
    this.#flockId = flockId;
    this.#times = times;
  }

  static async watch(engine: TestEngine, flockId: string, times: OperationTimes): Promise<WatchedWall> {
    const wall = new WatchedWall(engine, flockId, times);
    const response = await engine.fetch("GET", `/flocks/${flockId}/wall`, { signal: wall.#stop.signal });
    wall.#reading = wall.#read(response.body!);
    return wall;
  }

  get count(): number {
    return [...this.#posted.values()].reduce((sum, { length }) => sum + length, 0);
  }

  async post(agentId: string, body: string): Promise<void> {
    const { status, json } = await this.#times.time("wall post", () =>
      this.#engine.post(`/flocks/${this.#flockId}/post`, { agent_id: agentId, body }),
    );
    const { agent_id, body: told } = json as Message;
    expectEqual("the post", [status, agent_id, told], [200, agentId, body]);
    this.acknowledged(agentId, body);
  }

  /** Notes a post that was answered. Those of one author come one after the other. */
  acknowledged(agentId: string, body: string): void {
    this.#posted.set(agentId, [...(this.#posted.get(agentId) ?? []), body]);
  }

  /** All posts are there once, each author's in their order, numbered without gaps, for readers as in the history. */
  async check(): Promise<void> {
    const history = (await this.#engine.get(`/flocks/${this.#flockId}/wall/history`)).json as Message[];
    expectEqual(
      "the numbers on the wall",
      history.map(({ seq }) => seq),
      history.map((_, at) => at + 1),
    );
    for (const [agentId, bodies] of this.#posted) {
      const own = history.filter(({ agent_id }) => agent_id === agentId).map(({ body }) => body);
      expectEqual(`the posts of ${agentId}`, own, bodies);
    }
    expectEqual("the number of posts", history.length, this.count);
    const deadline = performance.now() + CATCH_UP_MS;
    while (this.#seen.length < history.length && performance.now() < deadline) await Bun.sleep(20);
    expectEqual("what the reader saw", this.#seen, history);
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let text = "";
    try {
      for await (const chunk of body) {
        const events = (text + decoder.decode(chunk, { stream: true })).split("\n\n");
        text = events.pop()!;
        for (const event of events)
          if (event.startsWith("data: ")) this.#seen.push(JSON.parse(event.slice("data: ".length)));
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#reading;
  }
}
