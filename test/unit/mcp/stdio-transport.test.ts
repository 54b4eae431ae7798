import { expect, test } from "bun:test";
import { PassThrough, Writable } from "node:stream";
import { StdioTransport } from "../../../src/mcp/stdio-transport.ts";

const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n';
const REPLY = { jsonrpc: "2.0", id: 1, result: { text: "x".repeat(900) } } as const;

/** An output whose reader takes nothing until `release` is called. */
class StalledOutput extends Writable {
  #pending: (() => void)[] = [];
  #released = false;

  override _write(_chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.#released) done();
    else this.#pending.push(done);
  }

  release(): void {
    this.#released = true;
    for (const done of this.#pending.splice(0)) done();
  }
}

function connect(output: Writable = new PassThrough()) {
  const input = new PassThrough();
  const transport = new StdioTransport(input, output, { lineBytes: 10_000, unsentBytes: 2000 });
  const messages: unknown[] = [];
  const ends: string[] = [];
  transport.onmessage = (message) => void messages.push(message);
  transport.onend = (reason) => void ends.push(reason);
  return { input, transport, messages, ends };
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 5));

test("lines become messages and what is no message is answered", async () => {
  const output = new PassThrough();
  const { input, transport, messages } = connect(output);
  await transport.start();
  input.write(`${PING}nonsense\n${PING}`);
  await turn();
  expect(messages).toHaveLength(2);
  expect(JSON.parse(String(output.read()))).toMatchObject({ id: null, error: { code: -32700 } });
  await transport.close();
});

test("a client that does not read is not read from, until it does", async () => {
  const output = new StalledOutput();
  const { input, transport, messages } = connect(output);
  await transport.start();
  const sent = [1, 2, 3].map(() => transport.send(REPLY));
  input.write(PING);
  await turn();
  expect(messages).toHaveLength(1);
  input.write(PING);
  input.write(PING);
  await turn();
  expect(messages).toHaveLength(1);
  output.release();
  await Promise.all(sent);
  await turn();
  expect(messages).toHaveLength(3);
  await transport.close();
});

test("flushed waits for all output", async () => {
  const output = new StalledOutput();
  const { transport } = connect(output);
  await transport.start();
  await transport.flushed();
  const sent = transport.send(REPLY);
  const steps: string[] = [];
  const waiting = transport.flushed().then(() => steps.push("flushed"));
  await turn();
  expect(steps).toEqual([]);
  output.release();
  await Promise.all([sent, waiting]);
  await transport.close();
});

test("the end of input ends once and answers can still be sent", async () => {
  const output = new PassThrough();
  const { input, transport, ends } = connect(output);
  await transport.start();
  input.end();
  await turn();
  await transport.send(REPLY);
  expect(JSON.parse(String(output.read()))).toEqual(REPLY);
  await transport.close();
  expect(ends).toEqual(["stdin ended"]);
});

test("output that breaks ends the connection and fails what is sent", async () => {
  const output = new StalledOutput();
  const { transport, ends } = connect(output);
  await transport.start();
  const flushed = transport.flushed();
  output.destroy(new Error("EPIPE"));
  await turn();
  await flushed;
  expect(ends).toEqual(["stdout failed"]);
  await expect(transport.send(REPLY)).rejects.toThrow("no longer reads");
  await transport.close();
});

test("nothing is delivered after close, and close is told once", async () => {
  const { input, transport, messages, ends } = connect();
  const closes: string[] = [];
  transport.onclose = () => void closes.push("closed");
  await transport.start();
  await transport.close();
  await transport.close();
  input.write(PING);
  await turn();
  expect({ messages, ends, closes }).toEqual({ messages: [], ends: [], closes: ["closed"] });
});
