import { deepStrictEqual, ok } from "node:assert/strict";
import { KEPT_BYTES, type Line, LineSplitter } from "../../src/mcp/line-splitter.ts";
import { readMessage } from "../../src/mcp/read-message.ts";
import type { FuzzTarget } from "./fuzz-target.ts";
import { split } from "./mutate.ts";

/** Above what is kept of each end of a line that is too long */
const LIMIT_BYTES = KEPT_BYTES + 100;
const REFUSALS = new Set([-32700, -32600]);

/** What a client writes: each line is a message, a refusal that a client can read, or blank. */
export const lines: FuzzTarget = {
  name: "lines",
  corpusPath: "corpus/lines",
  words: [
    "\n",
    '"jsonrpc":"2.0"',
    '"id":',
    '"method":"ping"',
    "{",
    "}",
    "[",
    "1e999",
    '"\\ud800"',
    "\0",
    " ".repeat(300),
  ],
  tries: 30_000,
  check(bytes, rng) {
    const whole = linesOf([bytes]);
    deepStrictEqual(linesOf(split(bytes, rng)), whole);
    for (const line of whole) {
      const read = readMessage(line, LIMIT_BYTES);
      if (read === null || "message" in read) continue;
      const { id, error } = JSON.parse(JSON.stringify(read.refusal));
      ok(REFUSALS.has(error.code), `code ${error.code}`);
      ok(id === null || typeof id === "string" || typeof id === "number", `id ${id}`);
    }
  },
};

function linesOf(pieces: Uint8Array[]): Line[] {
  const splitter = new LineSplitter(LIMIT_BYTES);
  const copy = (part: Uint8Array) => Uint8Array.from(part);
  return pieces.flatMap((piece) =>
    [...splitter.push(piece)].map((line) =>
      line.kind === "line"
        ? { kind: line.kind, bytes: copy(line.bytes) }
        : { kind: line.kind, head: copy(line.head), tail: copy(line.tail) },
    ),
  );
}
