import { expect, test } from "bun:test";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { type Listener, listen } from "../../../src/engine/listener.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeEngine } from "../../support/fake-engine.ts";
import { flockOf } from "../../support/fake-flocks.ts";

/** An engine behind a real port, with a flock that has one agent, `a-1`. */
class ListeningEngine implements AsyncDisposable {
  readonly fake: FakeEngine;
  readonly listener: Listener;
  readonly flockId: string;
  readonly url: string;

  private constructor(fake: FakeEngine, listener: Listener, flockId: string, port: number) {
    this.fake = fake;
    this.listener = listener;
    this.flockId = flockId;
    this.url = `http://127.0.0.1:${port}/flocks/${flockId}`;
  }

  static async open(env: Record<string, string> = {}): Promise<ListeningEngine> {
    const fake = await FakeEngine.open(env);
    const { flock_id } = await flockOf(fake, ["a"]);
    const listener = await listen(fake.engine.app, { host: "127.0.0.1", port: 0 });
    return new ListeningEngine(fake, listener, flock_id, (listener.address as { port: number }).port);
  }

  async post(body: string): Promise<void> {
    const { status, text } = await this.fake.post(`/flocks/${this.flockId}/post`, { agent_id: "a-1", body });
    if (status !== 200) throw new Error(`not posted: ${status} ${text}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.listener.stop();
    await this.fake[Symbol.asyncDispose]();
  }
}

/** Bodies in the events of a stream, as they come. */
async function* bodies(response: Response): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    const events = (rest + chunk).split("\n\n");
    rest = events.pop()!;
    for (const event of events) {
      if (event === ":") continue;
      if (!event.startsWith("data: {") || event.includes("\n")) throw new Error(`no event: ${event}`);
      yield (JSON.parse(event.slice("data: ".length)) as { body: string }).body;
    }
  }
  if (rest !== "") throw new Error(`half an event: ${rest}`);
}

async function take(events: AsyncGenerator<string>, count: number): Promise<string[]> {
  const taken: string[] = [];
  while (taken.length < count) {
    const { value, done } = await events.next();
    if (done) break;
    taken.push(value);
  }
  return taken;
}

const texts = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => `message\n${from + at}`);

test("GET wall streams what is there and then what comes, without gap or repetition", async () => {
  await using engine = await ListeningEngine.open();
  for (const text of texts(0, 20)) await engine.post(text);
  const response = await fetch(`${engine.url}/wall`);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const events = bodies(response);
  const posting = Promise.all(texts(20, 300).map((text) => engine.post(text)));
  expect((await take(events, 300)).sort()).toEqual(texts(0, 300).sort());
  await posting;
  await engine.post("last");
  expect(await take(events, 1)).toEqual(["last"]);
  await events.return(undefined);
});

test("an empty wall answers at once and streams the first message", async () => {
  await using engine = await ListeningEngine.open();
  const response = await fetch(`${engine.url}/wall`);
  expect(response.status).toBe(200);
  const events = bodies(response);
  const first = take(events, 1);
  await engine.post("first");
  expect(await first).toEqual(["first"]);
  await events.return(undefined);
});

test("streams end with the flock, and what was posted before comes first", async () => {
  await using engine = await ListeningEngine.open();
  const events = bodies(await fetch(`${engine.url}/wall`));
  await engine.post("one");
  await engine.post("two");
  expect((await fetch(engine.url, { method: "DELETE" })).status).toBe(200);
  expect(await Array.fromAsync(events)).toEqual(["one", "two"]);
});

test("streams end with the engine", async () => {
  const engine = await ListeningEngine.open();
  await engine.post("one");
  const events = bodies(await fetch(`${engine.url}/wall`));
  expect(await take(events, 1)).toEqual(["one"]);
  await engine.fake.engine.closeStreams();
  expect(await Array.fromAsync(events)).toEqual([]);
  await engine[Symbol.asyncDispose]();
});

test("a client that does not read is cut off, and posts and other readers go on", async () => {
  await using engine = await ListeningEngine.open();
  const slow = await stalled(engine);
  const events = bodies(await fetch(`${engine.url}/wall`));
  const body = "x".repeat(900_000);
  const read = take(events, 30);
  for (let at = 0; at < 30; at++) await engine.post(body);
  expect((await read).length).toBe(30);
  await events.return(undefined);
  // What was on its way when it was cut off still comes, and then the end, long before all of it.
  let received = 0;
  slow.on("data", (chunk: Buffer) => {
    received += chunk.byteLength;
  });
  slow.resume();
  await once(slow, "end");
  expect(received).toBeLessThan(29 * body.length);
  slow.destroy();
});

test("a HEAD ends at once and leaves no reader", async () => {
  await using engine = await ListeningEngine.open();
  const { status, body } = await fetch(`${engine.url}/wall`, { method: "HEAD" });
  expect([status, body]).toEqual([200, null]);
  expect(engine.fake.engine.parts.flocks.get(engine.flockId).wall.readers).toBe(0);
});

test("a client that goes is forgotten, and its line is in the access log", async () => {
  await using engine = await ListeningEngine.open();
  await engine.post("one");
  const { wall } = engine.fake.engine.parts.flocks.get(engine.flockId);
  const events = bodies(await fetch(`${engine.url}/wall`));
  await take(events, 1);
  expect(wall.readers).toBe(1);
  await events.return(undefined);
  await eventually("the reader to be gone", () => wall.readers === 0);
  const log = join(engine.fake.engine.parts.paths.audit, "access.jsonl");
  await eventually("its line in the log", () => readFileSync(log, "utf8").includes("/wall"));
});

/** A client that has got the head of an answer and reads nothing more. */
async function stalled(engine: ListeningEngine): Promise<Socket> {
  const { hostname, port, pathname } = new URL(`${engine.url}/wall`);
  const socket = connect(Number(port), hostname);
  socket.write(`GET ${pathname} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
  await once(socket, "data");
  socket.pause();
  return socket;
}
