import { ok } from "node:assert/strict";
import { readdirSync } from "node:fs";
import { sha256OfFile } from "../../src/base/file-hash.ts";
import { EngineError } from "../../src/engine/engine-error.ts";
import { entryOf } from "../../src/engine/snapshots/bundle-manifest.ts";
import {
  DIFF_HEADER_BYTES,
  DiffFormatError,
  decodeDiffIndex,
  encodeDiffIndex,
  indexBytesOf,
} from "../../src/engine/snapshots/diff-index.ts";
import { receiveBundle } from "../../src/engine/snapshots/receive-bundle.ts";
import { BLOCK_BYTES } from "../../src/engine/snapshots/ustar.ts";
import { baseFilesIn } from "../../src/vm/base-store.ts";
import { fitChecksum } from "../support/bundles.ts";
import { TemporaryDirectory } from "../support/temporary-directory.ts";
import type { FuzzTarget } from "./fuzz-target.ts";
import { split } from "./mutate.ts";

/** What is received is what the manifest says, or nothing is received and the reason is short. */
export const bundle: FuzzTarget = {
  name: "bundle",
  corpusPath: "corpus/bundle",
  words: [
    ...[
      "manifest.json",
      "metadata.json",
      "memory.bin",
      "state.bin",
      "rootfs.ext4",
      "../x",
      "/x",
      "ustar\u000000",
    ],
    ...["null", "1e999", "-1", '"__proto__":{}', '"files":[]', '"snapshot_type":"diff"', '"size_bytes":0'],
  ],
  tries: 1500,
  async check(bytes, rng) {
    using directory = new TemporaryDirectory();
    const files = baseFilesIn(directory.path);
    const input = rng.oneIn(2) ? withFittingChecksums(bytes) : bytes;
    try {
      const { manifest } = await receiveBundle(inPieces(split(input, rng)), {
        begin: async () => files,
        requireRoom: async () => undefined,
      });
      ok(readdirSync(directory.path).join() === "memory.bin,state.bin", "other files are there");
      for (const [name, path] of [
        ["memory.bin", files.memoryPath],
        ["state.bin", files.statePath],
      ] as const)
        ok((await sha256OfFile(path)) === entryOf(manifest, name).sha256, `${name} has another hash`);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      ok(error.status === 400 && String(JSON.stringify(error.body)).length < 800, error.message);
    }
  },
};

export const diffIndex: FuzzTarget = {
  name: "diff-index",
  corpusPath: "corpus/diff-index",
  words: ["IGNPAGES", "\x01\0\0\0", "\0\x10\0\0"],
  tries: 3000,
  check(bytes) {
    // As large as the file would have to be, or as the bytes are.
    for (const fileBytes of [bytes.byteLength, bytes.byteLength + 4096, bytes.byteLength + 8192]) {
      try {
        const size = indexBytesOf(bytes.subarray(0, DIFF_HEADER_BYTES), fileBytes);
        ok(size <= fileBytes, "the index is larger than the file");
        if (size > bytes.byteLength) continue;
        const index = decodeDiffIndex(bytes.subarray(0, size), fileBytes);
        ok(
          Buffer.compare(encodeDiffIndex(index), bytes.subarray(0, size)) === 0,
          "it does not encode to itself",
        );
      } catch (error) {
        if (!(error instanceof DiffFormatError)) throw error;
      }
    }
  },
};

async function* inPieces(pieces: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* pieces;
}

function withFittingChecksums(bytes: Uint8Array): Uint8Array {
  const fitted = Buffer.from(bytes);
  for (let at = 0; at + BLOCK_BYTES <= fitted.byteLength; at += BLOCK_BYTES) {
    const block = fitted.subarray(at, at + BLOCK_BYTES);
    if (block.toString("latin1", 257, 262) === "ustar") fitChecksum(block);
  }
  return fitted;
}
