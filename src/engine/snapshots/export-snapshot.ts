import { type FileHandle, open } from "node:fs/promises";
import type { SealedFile } from "../../vm/file-seal.ts";
import { type EngineError, jsonError } from "../engine-error.ts";
import { type BundleFile, MANIFEST_FILE, manifestFor, travellingMetadata } from "./bundle-manifest.ts";
import type { Snapshot } from "./snapshot-record.ts";
import { BLOCK_BYTES, encodeHeader, MAX_ENTRY_BYTES, paddingOf } from "./ustar.ts";

const PIECE_BYTES = 262_144;

interface OpenFile {
  path: BundleFile;
  bytes: number;
  file: FileHandle;
}

/**
 * A snapshot as one stream, with how long it will be. Its files are opened at once: whoever deletes it meanwhile does not
 * hurt. The snapshot and the root were found sound.
 */
export async function exportSnapshot(
  snapshot: Snapshot,
  rootfs: SealedFile,
): Promise<{ bytes: number; stream: ReadableStream<Uint8Array> }> {
  const { files, manifest, metadata } = snapshot;
  const metadataText = jsonOf(travellingMetadata(metadata));
  const large = [
    { path: "memory.bin", from: files.memoryPath, ...manifest.files.memory },
    { path: "state.bin", from: files.statePath, ...manifest.files.state },
    { path: "rootfs.ext4", from: rootfs.path, bytes: rootfs.bytes, sha256: rootfs.sha256 },
  ] as const;
  const entries = [
    { path: "metadata.json" as const, bytes: metadataText.byteLength, sha256: sha256Of(metadataText) },
    ...large,
  ];
  const manifestText = jsonOf(
    manifestFor(
      snapshot,
      entries.map(({ path, bytes, sha256 }) => ({ path, size_bytes: bytes, sha256 })),
    ),
  );
  const tooLarge = large.find(({ bytes }) => bytes > MAX_ENTRY_BYTES);
  if (tooLarge)
    throw exportFailed(`${tooLarge.path} has ${tooLarge.bytes} bytes, more than an archive's entry can have`);
  const modified = Math.floor(Date.parse(metadata.created_at) / 1000);
  const sizes = [manifestText.byteLength, ...entries.map(({ bytes }) => bytes)];
  const bytes = sizes.reduce((sum, size) => sum + BLOCK_BYTES + size + paddingOf(size), 2 * BLOCK_BYTES);
  const opened = await openAll(large);
  const close = async () => {
    for (const { file } of opened) await file.close();
  };
  return { bytes, stream: streamOf(bundle(manifestText, metadataText, opened, modified), close) };
}

/** `close` is called once, whether it is read to its end, given up or broken. */
function streamOf(
  pieces: AsyncGenerator<Uint8Array>,
  close: () => Promise<void>,
): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await pieces.next();
        if (!done) return controller.enqueue(value);
        await close();
        controller.close();
      } catch (error) {
        await close();
        controller.error(error);
      }
    },
    cancel: close,
  });
}

async function* bundle(
  manifestText: Uint8Array,
  metadataText: Uint8Array,
  files: OpenFile[],
  modified: number,
): AsyncGenerator<Uint8Array> {
  for (const [name, text] of [
    [MANIFEST_FILE, manifestText],
    ["metadata.json", metadataText],
  ] as const)
    yield Buffer.concat([
      encodeHeader({ name, bytes: text.byteLength }, modified),
      text,
      new Uint8Array(paddingOf(text.byteLength)),
    ]);
  for (const { path, bytes, file } of files) {
    yield encodeHeader({ name: path, bytes }, modified);
    yield* contentOf(file, bytes);
    if (paddingOf(bytes) > 0) yield new Uint8Array(paddingOf(bytes));
  }
  yield new Uint8Array(2 * BLOCK_BYTES);
}

/** Throws when the file is shorter, which breaks the stream off: its reader must not take it for whole. */
async function* contentOf(file: FileHandle, bytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes; ) {
    const piece = new Uint8Array(Math.min(PIECE_BYTES, bytes - at));
    const { bytesRead } = await file.read(piece, 0, piece.byteLength, at);
    if (bytesRead === 0) throw new Error(`a file of the bundle ends at ${at} of ${bytes} bytes`);
    yield piece.subarray(0, bytesRead);
    at += bytesRead;
  }
}

async function openAll(
  files: readonly { path: BundleFile; from: string; bytes: number }[],
): Promise<OpenFile[]> {
  const opened: OpenFile[] = [];
  try {
    for (const { path, from, bytes } of files) opened.push({ path, bytes, file: await open(from, "r") });
    return opened;
  } catch (error) {
    for (const { file } of opened) await file.close();
    throw error;
  }
}

/** `reason` is a sentence for people. */
export function exportFailed(reason: string, cause?: unknown): EngineError {
  return jsonError(500, "snapshot_export_failed", "snapshot_export_failed", { reason }, cause);
}

function jsonOf(value: unknown): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(value, null, 2)}\n`);
}

function sha256Of(bytes: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}
