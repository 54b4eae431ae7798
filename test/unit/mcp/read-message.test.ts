import { expect, test } from "bun:test";
import { KEPT_BYTES, LineSplitter } from "../../../src/mcp/line-splitter.ts";
import { type LineRefusal, readMessage } from "../../../src/mcp/read-message.ts";

const LIMIT_BYTES = 10_000;

function read(text: string) {
  const [line] = new LineSplitter(LIMIT_BYTES).push(Buffer.from(`${text}\n`));
  return readMessage(line!, LIMIT_BYTES);
}

function refusal(text: string): LineRefusal {
  const got = read(text);
  if (!got || !("refusal" in got)) throw new Error(`taken: ${text.slice(0, 100)}`);
  return got.refusal;
}

const LONG = "x".repeat(LIMIT_BYTES);

test("a request, a notification and a reply are messages", () => {
  for (const text of [
    '{"jsonrpc":"2.0","id":"a","method":"ping"}',
    '{"jsonrpc":"2.0","method":"notifications/initialized"}\r',
    '{"jsonrpc":"2.0","id":1,"result":{}}',
  ]) {
    expect(read(text)).toEqual({ message: JSON.parse(text) });
  }
});

test("a blank line is nothing", () => {
  expect(read("")).toBeNull();
  expect(read(" \r")).toBeNull();
});

test("what is not JSON is a parse error without an id", () => {
  for (const text of ["{", "hello", '{"id":1', "\u0000"]) {
    expect(refusal(text)).toMatchObject({ id: null, error: { code: -32700 } });
  }
});

test("JSON that is no message is refused under its own id when it has one", () => {
  expect(refusal('{"id":7,"method":"ping"}')).toMatchObject({ id: 7, error: { code: -32600 } });
  expect(refusal('{"jsonrpc":"2.0","id":{},"method":"ping"}')).toMatchObject({ id: null });
  for (const text of ["1", "null", '"text"']) expect(refusal(text).id).toBeNull();
  expect(refusal("[]").error.message).toContain("Batches are not supported");
});

test("a message that is too long is answered under its id, whether that comes first or last", () => {
  const early = `{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"a":"${LONG}"}}`;
  const late = `{"method":"tools/call","params":{"a":"${LONG}"},"jsonrpc":"2.0","id":"call 17"}`;
  const middle = `{"params":{"a":"${LONG}"},"id": -3 , "jsonrpc":"2.0","method":"tools/call"} `;
  expect(refusal(early)).toMatchObject({ id: 17, error: { code: -32600 } });
  expect(refusal(late)).toMatchObject({ id: "call 17" });
  expect(refusal(middle)).toMatchObject({ id: -3 });
  expect(refusal(early).error.message).toContain(`the limit is ${LIMIT_BYTES} bytes`);
});

test("an id inside the arguments of a message that is too long is not taken for its own", () => {
  for (const text of [
    `{"jsonrpc":"2.0","method":"tools/call","params":{"id":5,"a":"${LONG}"}}`,
    `{"jsonrpc":"2.0","method":"tools/call","params":{"a":"${LONG}","id":5}}`,
    `{"method":"tools/call","params":{"a":"${LONG},\\"id\\":5}"}}`,
    `{"a":"${LONG}","id":`,
    LONG.repeat(2),
  ]) {
    expect(refusal(text).id).toBeNull();
  }
});

test("finding the id takes no longer on text made to confuse it", () => {
  const hostile = `{${'"jsonrpc":"2.0",'.repeat(KEPT_BYTES)}${'"id":"\\'.repeat(KEPT_BYTES)}`;
  expect(refusal(hostile).id).toBeNull();
});
