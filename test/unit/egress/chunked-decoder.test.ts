import { expect, test } from "bun:test";
import fc from "fast-check";
import { ChunkedDecoder } from "../../../src/egress/chunked-decoder.ts";
import { labelled } from "../../support/short-label.ts";

function decode(text: string): string {
  const decoder = new ChunkedDecoder();
  const { data, length } = decoder.push(Buffer.from(text, "latin1"));
  return `${Buffer.concat(data).toString("latin1")}|${decoder.isDone ? text.slice(length) : "more"}`;
}

test("chunks are joined; extensions and trailers are dropped; what follows is left", () => {
  expect(decode("3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nX: y\r\n\r\nGET /")).toBe("abc0123456789|GET /");
  expect(decode("0\r\n\r\n")).toBe("|");
  expect(decode("3\r\nab")).toBe("ab|more");
});

test.each(
  labelled([
    "\r\n",
    "x\r\n",
    "-1\r\n",
    "0x3\r\nabc\r\n",
    " 3\r\nabc\r\n",
    "3 \r\nabc\r\n",
    "3\nabc\r\n",
    "3\r\nabcd\r\n",
    "3\r\nabc\n",
    "3\r\nabcX\r\n",
    "3\r;\r\n",
    "123456789\r\n",
    "0\r\nX\r\n\r\n",
    "0\r\n X: y\r\n\r\n",
    `1;${"x".repeat(2000)}`,
    `0\r\n${"X: y\r\n".repeat(3000)}`,
  ]),
)("%s is refused", (_, text) => {
  expect(() => decode(text)).toThrow("the HTTP request is not served");
});

test("it reads the same in pieces of any size", () => {
  const body = fc.array(fc.uint8Array({ minLength: 1, maxLength: 50 }), { maxLength: 8 });
  fc.assert(
    fc.property(body, fc.integer({ min: 1, max: 20 }), (chunks, pieceBytes) => {
      const framed = chunks.flatMap((chunk) => [
        Buffer.from(`${chunk.byteLength.toString(16)}\r\n`),
        chunk,
        Buffer.from("\r\n"),
      ]);
      const bytes = Buffer.concat([...framed, Buffer.from("0\r\n\r\n")]);
      const decoder = new ChunkedDecoder();
      const found: Uint8Array[] = [];
      for (let at = 0; at < bytes.byteLength; at += pieceBytes)
        found.push(...decoder.push(bytes.subarray(at, at + pieceBytes)).data);
      expect(Buffer.concat(found)).toEqual(Buffer.concat(chunks));
      expect(decoder.isDone).toBe(true);
    }),
  );
});
