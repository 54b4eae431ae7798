import { expect, test } from "bun:test";
import fc from "fast-check";
import { decodeBase64 } from "../../../src/mcp/decode-base64.ts";

test("any bytes come back, with or without line breaks", () => {
  const property = fc.property(
    fc.uint8Array({ maxLength: 300 }),
    fc.integer({ min: 1, max: 80 }),
    (bytes, width) => {
      const text = Buffer.from(bytes).toString("base64");
      const broken = text.replace(new RegExp(`.{${width}}`, "g"), "$&\r\n");
      expect(decodeBase64(text)).toEqual({ bytes: new Uint8Array(bytes) });
      expect(decodeBase64(broken)).toEqual({ bytes: new Uint8Array(bytes) });
    },
  );
  fc.assert(property, { seed: 20_261_130 });
});

test("a stray character is named with its place", () => {
  expect(decodeBase64("QUJD*UJD")).toEqual({ problem: 'has "*" at character 5' });
  expect(decodeBase64("QUé=")).toEqual({ problem: 'has "é" at character 3' });
  expect(decodeBase64("QQ\u0000=")).toEqual({ problem: 'has "\\u0000" at character 3' });
});

test("the URL alphabet is recognised", () => {
  expect(decodeBase64("_-8=")).toEqual({ problem: 'has "_" of the URL alphabet at character 1' });
});

test("missing, extra and misplaced padding and leftover bits are refused", () => {
  for (const text of ["Q", "QQ", "QQ=", "QQ===", "Q===", "=QQ=", "QQ==QQ==", "====", "QR=="]) {
    expect(decodeBase64(text)).toEqual({ problem: "is cut short or has wrong = padding" });
  }
});

test("nothing decodes to nothing", () => {
  expect(decodeBase64("")).toEqual({ bytes: new Uint8Array() });
});
