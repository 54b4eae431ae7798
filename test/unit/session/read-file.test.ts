import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type FileRange, readFile } from "../../../src/session/read-file.ts";
import type { SessionError } from "../../../src/session/session-error.ts";
import { rejection } from "../../support/rejection.ts";
import { FakeVm } from "./fake-vm-source.ts";

const OPTIONS = { seed: 20_261_130, numRuns: 300 };
const NEVER = new AbortController().signal;
const WHOLE: FileRange = { encoding: "text", maxBytes: 1_048_576, offset: 0, lines: null };

function read(content: string | Uint8Array, range: Partial<FileRange>) {
  const vm = new FakeVm();
  vm.files.set("/f", Buffer.from(content));
  return readFile(vm, "/f", { ...WHOLE, ...range }, NEVER);
}

describe("bytes of a file", () => {
  test("of any limit join to the whole, without a split character", async () => {
    const text = fc.string({ unit: "grapheme", maxLength: 40 });
    const joins = async (whole: string, maxBytes: number) => {
      let joined = "";
      for (let offset = 0; ; ) {
        const part = await read(whole, { offset, maxBytes });
        joined += part.content;
        offset += part.bytes;
        if (part.leftBytes === 0) break;
      }
      expect(joined).toBe(whole);
    };
    await fc.assert(fc.asyncProperty(text, fc.integer({ min: 4, max: 20 }), joins), OPTIONS);
  });

  test("in base64 are cut anywhere", async () => {
    expect(await read("ü", { encoding: "base64", maxBytes: 1 })).toEqual({
      content: "ww==",
      hasReplacements: false,
      offset: 0,
      bytes: 1,
      fileBytes: 2,
      leftBytes: 1,
    });
  });

  test("behind its end are refused, at its end there are none", async () => {
    expect(await read("ab", { offset: 2 })).toMatchObject({ content: "", leftBytes: 0 });
    const error = await rejection<SessionError>(read("ab", { offset: 3 }));
    expect(error.message).toBe("'/f' has 2 bytes, and none from 3 on.");
  });
});

describe("lines of a file", () => {
  test("are those an editor counts", async () => {
    const line = fc.string({ maxLength: 8 }).map((text) => text.replaceAll("\n", ""));
    const cases = [
      fc.array(line, { minLength: 1, maxLength: 9 }),
      fc.nat(8),
      fc.nat(4),
      fc.boolean(),
    ] as const;
    const agrees = async (lines: string[], start: number, more: number, endsOpen: boolean) => {
      fc.pre(start < lines.length && !(endsOpen && lines.at(-1) === ""));
      const whole = lines.join("\n") + (endsOpen ? "" : "\n");
      const wanted = lines.slice(start, start + more + 1);
      const hasLast = start + more + 1 >= lines.length;
      const { content } = await read(whole, { lines: { first: start + 1, last: start + more + 1 } });
      expect(content).toBe(wanted.join("\n") + (hasLast && endsOpen ? "" : "\n"));
    };
    await fc.assert(fc.asyncProperty(...cases, agrees), OPTIONS);
  });

  test("are found across the pieces the file is read in, and limited in bytes", async () => {
    const whole = Array.from({ length: 400_000 }, (_, index) => `${index + 1}\n`).join("");
    expect(await read(whole, { lines: { first: 399_999, last: null } })).toMatchObject({
      content: "399999\n400000\n",
      leftBytes: 0,
    });
    const limited = await read(whole, { lines: { first: 200_000, last: 300_000 }, maxBytes: 14 });
    expect(limited).toMatchObject({ content: "200000\n200001\n", bytes: 14 });
    const open = await read(whole, { lines: { first: 2, last: null }, maxBytes: 4 });
    expect(open.content).toBe("2\n3\n");
  });

  test.each([
    ["", 2, 0],
    ["a", 2, 1],
    ["a\n", 2, 1],
    ["a\nb", 5, 2],
  ])("of %j: there is no line %d, but %d", async (content, first, count) => {
    const error = await rejection<SessionError>(read(content, { lines: { first, last: null } }));
    expect(error.message).toBe(`'/f' has ${count} lines, and no line ${first}.`);
  });
});
