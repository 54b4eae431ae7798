import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { open } from "node:fs/promises";
import { copySparsely, writeNonZero } from "../../../src/vm/sparse-copy.ts";
import { rejection } from "../../support/rejection.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

const KIB = 1024;
const NEVER = new AbortController().signal;

/** 3 MiB and a bit, with data at the start, across a border of pieces, and in the last byte. */
function content(): Uint8Array {
  const bytes = new Uint8Array(3 * KIB * KIB + 5);
  bytes.fill(1, 0, 10);
  bytes.fill(2, KIB * KIB - 3, KIB * KIB + 3);
  bytes[bytes.byteLength - 1] = 3;
  return bytes;
}

test("a copy has the same bytes, and no more of them on disk than are not zero", async () => {
  using directory = new TemporaryDirectory();
  await Bun.write(directory.join("from"), content());
  await using source = await open(directory.join("from"));
  const writtenBytes = await copySparsely(source, directory.join("to"), NEVER);
  expect(Buffer.compare(await Bun.file(directory.join("to")).bytes(), content())).toBe(0);
  // Nothing where the file system shares blocks.
  expect([0, 3 * 64 * KIB + 5]).toContain(writtenBytes);
  if (writtenBytes > 0) expect(statSync(directory.join("to")).blocks * 512).toBeLessThan(KIB * KIB);
});

test("what is copied is the open file, whatever its name names by now", async () => {
  using directory = new TemporaryDirectory();
  await Bun.write(directory.join("from"), "old");
  await using source = await open(directory.join("from"));
  await Bun.file(directory.join("from")).delete();
  await Bun.write(directory.join("from"), "new");
  await copySparsely(source, directory.join("to"), NEVER);
  expect(await Bun.file(directory.join("to")).text()).toBe("old");
});

test("a copy ends when nobody wants it", async () => {
  using directory = new TemporaryDirectory();
  // From a file system of its own: blocks are never shared across.
  await using source = await open("/proc/self/status");
  const copying = copySparsely(source, directory.join("to"), AbortSignal.abort(new Error("enough")));
  expect((await rejection(copying)).message).toBe("enough");
});

test("only stretches of zeros are left out", async () => {
  using directory = new TemporaryDirectory();
  await using file = await open(directory.join("f"), "w+");
  await file.truncate(512 * KIB);
  const bytes = new Uint8Array(256 * KIB);
  expect(writeNonZero(file.fd, bytes, 0)).toBe(0);
  bytes[100 * KIB] = 9;
  expect(writeNonZero(file.fd, bytes, 128 * KIB)).toBe(64 * KIB);
  const read = new Uint8Array(1);
  await file.read(read, 0, 1, 228 * KIB);
  expect(read[0]).toBe(9);
});
