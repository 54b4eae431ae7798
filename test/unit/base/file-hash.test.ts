import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { sha256OfFile } from "../../../src/base/file-hash.ts";
import { rejection } from "../../support/rejection.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

test.each([0, 1, 4 * 1_048_576, 4 * 1_048_576 + 1])(
  "the hash of %d bytes is that of the content",
  async (bytes) => {
    using directory = new TemporaryDirectory();
    const content = Buffer.alloc(bytes, "pattern");
    writeFileSync(directory.join("file"), content);
    const expected = createHash("sha256").update(content).digest("hex");
    expect(await sha256OfFile(directory.join("file"))).toBe(expected);
  },
);

test("hashing stops when the caller gives up", async () => {
  using directory = new TemporaryDirectory();
  writeFileSync(directory.join("file"), "x");
  const hashing = sha256OfFile(directory.join("file"), AbortSignal.abort(new Error("enough")));
  expect((await rejection(hashing)).message).toBe("enough");
});
