import { open } from "node:fs/promises";
import type { z } from "zod";
import type { BaseFiles } from "../../vm/base-store.ts";
import { MAX_STATE_BYTES } from "../../vm/capture-machine.ts";
import { MAX_CPUS, MAX_MEMORY_MIB } from "../profiles/profile.ts";
import { bundleRefused } from "./bundle-error.ts";
import {
  BUNDLE_FILES,
  type BundleFile,
  type BundleManifest,
  bundleManifest,
  entryOf,
  MANIFEST_FILE,
  MAX_MANIFEST_BYTES,
  MAX_METADATA_BYTES,
  travellingMetadata,
} from "./bundle-manifest.ts";
import { DiffFormatError } from "./diff-index.ts";
import { readDiffIndex } from "./memory-diff.ts";
import { receiveFile } from "./received-file.ts";
import { type SnapshotMetadata, snapshotFields, snapshotMetadata } from "./snapshot-record.ts";
import { TarReader } from "./tar-reader.ts";
import { type UstarEntry, UstarError } from "./ustar.ts";

const MAX_MEMORY_BYTES = MAX_MEMORY_MIB * 1_048_576;

export interface BundleReceiver {
  /** Throws when this bundle is not for us, before anything large is read. Resolves with where to put it; null to only check it */
  begin(manifest: BundleManifest): Promise<BaseFiles | null>;
  requireRoom(): Promise<void>;
}

export interface ReceivedBundle {
  manifest: BundleManifest;
  metadata: SnapshotMetadata;
}

/**
 * Reads a bundle to its end. Whatever is not exactly one is refused with `invalid_snapshot_bundle`: entries in another order,
 * more or fewer of them, anything but regular files, other sizes or hashes than the manifest's.
 */
export async function receiveBundle(
  pieces: AsyncIterable<Uint8Array>,
  receiver: BundleReceiver,
): Promise<ReceivedBundle> {
  try {
    return await receive(new TarReader(pieces), receiver);
  } catch (error) {
    if (!(error instanceof UstarError)) throw error;
    throw invalid(`the archive ${error.message}`, error);
  }
}

async function receive(reader: TarReader, receiver: BundleReceiver): Promise<ReceivedBundle> {
  const manifest = await readJson(reader, MANIFEST_FILE, MAX_MANIFEST_BYTES, bundleManifest);
  requirePlausibleSizes(manifest);
  const files = await receiver.begin(manifest.value);
  const metadata = await readJson(reader, "metadata.json", MAX_METADATA_BYTES, snapshotMetadata);
  requireSame(manifest.value, "metadata.json", metadata);
  requireTravelling(manifest.value, metadata.value);
  const large = [
    ["memory.bin", files?.memoryPath],
    ["state.bin", files?.statePath],
    ["rootfs.ext4", undefined],
  ] as const;
  for (const [name, path] of large) {
    const entry = await nextEntry(reader, name, entryOf(manifest.value, name).size_bytes);
    const received = await receiveFile(reader.content(entry), path ?? null, () => receiver.requireRoom());
    requireSame(manifest.value, name, received);
  }
  if (await reader.next()) throw invalid(`the archive holds more than ${BUNDLE_FILES.length + 1} files`);
  await reader.end();
  if (files) await requireMemory(manifest.value, files);
  return { manifest: manifest.value, metadata: metadata.value };
}

/** The next entry, which must have this name and not be larger. */
async function nextEntry(reader: TarReader, name: string, maxBytes: number): Promise<UstarEntry> {
  const entry = await reader.next();
  if (entry?.name !== name)
    throw invalid(`${name} is expected, and ${entry ? JSON.stringify(entry.name) : "the end"} follows`);
  if (entry.bytes > maxBytes) throw invalid(`${name} has ${entry.bytes} bytes, more than ${maxBytes}`);
  return entry;
}

async function readJson<T>(
  reader: TarReader,
  name: string,
  maxBytes: number,
  schema: z.ZodType<T>,
): Promise<{ value: T; bytes: number; sha256: string }> {
  const entry = await nextEntry(reader, name, maxBytes);
  const pieces: Uint8Array[] = [];
  for await (const piece of reader.content(entry)) pieces.push(piece.slice());
  const content = Buffer.concat(pieces);
  const sha256 = new Bun.CryptoHasher("sha256").update(content).digest("hex");
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(content));
  } catch (error) {
    throw invalid(`${name} is not JSON`, error);
  }
  const result = schema.safeParse(parsed);
  if (result.success) return { value: result.data, bytes: content.byteLength, sha256 };
  const [issue] = result.error.issues;
  throw invalid(
    `${name} is not what it should be: ${issue?.path.join(".")}: ${issue?.message}`.slice(0, 300),
  );
}

function requirePlausibleSizes({ value }: { value: BundleManifest }): void {
  const { cpus, memoryBytes } = value.machine;
  if (cpus > MAX_CPUS || memoryBytes > MAX_MEMORY_BYTES)
    throw invalid(`no VM here has ${cpus} processors and ${memoryBytes} bytes of memory`);
  const limits: [BundleFile, number][] = [
    ["metadata.json", MAX_METADATA_BYTES],
    ["state.bin", MAX_STATE_BYTES],
  ];
  for (const [name, maxBytes] of limits)
    if (entryOf(value, name).size_bytes > maxBytes)
      throw invalid(`${name} is said to have more than ${maxBytes} bytes`);
  const { size_bytes } = entryOf(value, "memory.bin");
  const isFull = value.snapshot_type === "full";
  if (isFull ? size_bytes !== memoryBytes : size_bytes > 2 * memoryBytes)
    throw invalid(`memory.bin of ${size_bytes} bytes is no ${value.snapshot_type} one of ${memoryBytes}`);
}

function requireSame(
  manifest: BundleManifest,
  name: BundleFile,
  received: { bytes: number; sha256: string },
): void {
  const { size_bytes, sha256 } = entryOf(manifest, name);
  if (received.bytes !== size_bytes || received.sha256 !== sha256)
    throw invalid(`${name} is not what manifest.json says of it`);
}

/** The record must say what the manifest says, and carry neither a token nor a path of another host. */
function requireTravelling(manifest: BundleManifest, metadata: SnapshotMetadata): void {
  for (const key of Object.keys(snapshotFields) as (keyof typeof snapshotFields)[])
    if (manifest[key] !== metadata[key]) throw invalid(`metadata.json has another ${key} than manifest.json`);
  if (!Bun.deepEquals(metadata, travellingMetadata(metadata), true))
    throw invalid("metadata.json has a token, a path or a mark of an import in it");
}

async function requireMemory({ snapshot_type, machine }: BundleManifest, files: BaseFiles): Promise<void> {
  if (snapshot_type === "full") return;
  await using file = await open(files.memoryPath, "r");
  try {
    const { memoryBytes } = await readDiffIndex(file);
    if (memoryBytes !== machine.memoryBytes)
      throw new DiffFormatError(`is of ${memoryBytes} bytes of memory`);
  } catch (error) {
    if (!(error instanceof DiffFormatError)) throw error;
    throw invalid(`memory.bin ${error.message}`, error);
  }
}

function invalid(reason: string, cause?: unknown) {
  return bundleRefused("invalid_snapshot_bundle", reason, cause);
}
