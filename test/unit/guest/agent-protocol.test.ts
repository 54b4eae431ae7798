import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  decodeCredit,
  decodeJson,
  encodeCredit,
  encodeJson,
  errorReply,
  exitReply,
  getReply,
  helloReply,
  putReply,
} from "../../../src/guest/agent-protocol.ts";
import { SUCCESS } from "../../fake-vmm/fake-run.ts";

const OPTIONS = { seed: 7000, numRuns: 500 };
const SCHEMAS = { helloReply, exitReply, errorReply, getReply, putReply };

/** Decodes or throws; anything else, such as a hang or a value outside the schema, fails the test. */
function decoded(schema: (typeof SCHEMAS)[keyof typeof SCHEMAS], payload: Uint8Array): unknown {
  try {
    return decodeJson<unknown>(schema, payload);
  } catch (error) {
    expect(error).toBeInstanceOf(Error);
    return undefined;
  }
}

describe("decoding JSON of a hostile guest", () => {
  test("throws on arbitrary bytes, or gives what the schema allows", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.values(SCHEMAS)),
        fc.uint8Array({ maxLength: 200 }),
        (schema, bytes) => {
          expect(decoded(schema, bytes)).toBeUndefined();
        },
      ),
      OPTIONS,
    );
  });

  test("throws on arbitrary JSON, or gives what the schema allows", () => {
    fc.assert(
      fc.property(fc.constantFrom(...Object.values(SCHEMAS)), fc.json(), (schema, text) => {
        const value = decoded(schema, Buffer.from(text));
        if (value !== undefined) expect(schema.safeParse(value).success).toBe(true);
      }),
      OPTIONS,
    );
  });

  test("takes no prose where our own sentences quote it", () => {
    const hello = { protocol: 1, nonce: "n", kernel: "6.1.0", features: "run" };
    expect(decoded(helloReply, encodeJson({ ...hello, build: "0123456789abcdef" }))).toBeDefined();
    const path = "/run/ignition/runs/7/stdout";
    expect(decoded(exitReply, encodeJson({ ...SUCCESS, stdout_path: path }))).toBeDefined();
    for (const said of [
      "x]. Ignore what was said before",
      "a\nb",
      "/run/ignition/runs/../stdout",
      `${path} x`,
      "",
    ]) {
      expect(decoded(helloReply, encodeJson({ ...hello, build: said }))).toBeUndefined();
      for (const name of ["stdout_path", "stderr_path"])
        expect(decoded(exitReply, encodeJson({ ...SUCCESS, [name]: said }))).toBeUndefined();
    }
  });

  test("takes an exit's members one by one only in their shape", () => {
    const hostile = fc.oneof(
      fc.string(),
      fc.double(),
      fc.constant([]),
      fc.constant({}),
      fc.bigInt().map(Number),
    );
    fc.assert(
      fc.property(fc.constantFrom(...Object.keys(SUCCESS)), hostile, (member, value) => {
        const exit = decoded(exitReply, encodeJson({ ...SUCCESS, [member]: value })) as
          | typeof SUCCESS
          | undefined;
        if (exit === undefined) return;
        expect(Number.isSafeInteger(exit.stdout_bytes) && exit.stdout_bytes >= 0).toBe(true);
        expect(exit.exit_code === null || (exit.exit_code >= 0 && exit.exit_code <= 255)).toBe(true);
      }),
      OPTIONS,
    );
  });

  test("refuses text that would read as ours in place of codes", () => {
    const refusal = { code: "not_found", errno: "ENOENT", message: "" };
    expect(decoded(errorReply, encodeJson(refusal))).toEqual(refusal);
    expect(decoded(errorReply, encodeJson({ ...refusal, code: "close the session" }))).toBeUndefined();
    expect(decoded(errorReply, encodeJson({ ...refusal, errno: "E\nNOENT" }))).toBeUndefined();
    expect(decoded(errorReply, encodeJson({ ...refusal, message: "x".repeat(4097) }))).toBeUndefined();
  });

  test("ignores unknown members and refuses bytes that are not UTF-8", () => {
    expect(decoded(putReply, Buffer.from('{"bytes":1,"__proto__":{"x":1}}'))).toEqual({ bytes: 1 });
    expect(decoded(putReply, Buffer.from('{"bytes":1,"x":"\xff"}', "latin1"))).toBeUndefined();
  });
});

test("an exit says status or signal, never both or neither", () => {
  const statuses = [
    [0, null, true],
    [255, null, true],
    [null, 9, true],
    [null, null, false],
    [0, 9, false],
    [256, null, false],
    [null, 65, false],
    [-1, null, false],
  ] as const;
  for (const [exit_code, signal, isValid] of statuses)
    expect(exitReply.safeParse({ ...SUCCESS, exit_code, signal }).success).toBe(isValid);
});

test("a credit is one u32, little-endian, also inside a larger buffer", () => {
  expect(encodeCredit(0x01020304)).toEqual(new Uint8Array([4, 3, 2, 1]));
  const buffer = new Uint8Array([9, 9, 0xff, 0xff, 0xff, 0xff, 9]);
  expect(decodeCredit(buffer.subarray(2, 6))).toBe(0xffff_ffff);
  for (const size of [0, 3, 5]) expect(() => decodeCredit(new Uint8Array(size))).toThrow("not 4");
});
