import { TarReader } from "../../src/engine/snapshots/tar-reader.ts";
import { encodeHeader, paddingOf } from "../../src/engine/snapshots/ustar.ts";

/** A file of an archive. `header` changes the finished header before its checksum is made to fit. */
export interface BundleEntry {
  name: string;
  content: Uint8Array;
  header?: (header: Buffer) => void;
}

export async function unpack(bundle: Uint8Array): Promise<BundleEntry[]> {
  const reader = new TarReader(new Response(bundle.slice().buffer).body!);
  const entries: BundleEntry[] = [];
  for (let entry = await reader.next(); entry; entry = await reader.next()) {
    const pieces: Uint8Array[] = [];
    for await (const piece of reader.content(entry)) pieces.push(piece.slice());
    entries.push({ name: entry.name, content: Buffer.concat(pieces) });
  }
  return entries;
}

export function pack(entries: readonly BundleEntry[]): Uint8Array {
  const parts = entries.flatMap(({ name, content, header: change }) => {
    const header = Buffer.from(encodeHeader({ name, bytes: content.byteLength }, 0));
    change?.(header);
    fitChecksum(header);
    return [header, content, new Uint8Array(paddingOf(content.byteLength))];
  });
  return Buffer.concat([...parts, new Uint8Array(1024)]);
}

/** Makes a header's checksum right again. */
export function fitChecksum(header: Buffer): void {
  header.write(" ".repeat(8), 148);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
}

/** The same bundle with other JSON in one of its files, and sizes and hashes in manifest.json that fit again. */
export function withJson(
  entries: readonly BundleEntry[],
  name: string,
  change: (value: Record<string, unknown>) => void,
): BundleEntry[] {
  const changed = entries.map((entry) => {
    if (entry.name !== name) return entry;
    const value = JSON.parse(Buffer.from(entry.content).toString()) as Record<string, unknown>;
    change(value);
    return { ...entry, content: Buffer.from(JSON.stringify(value)) };
  });
  return name === "manifest.json" ? changed : withFittingManifest(changed);
}

/** The same bundle with other bytes in one of its files, and a manifest.json that fits again. */
export function withContent(
  entries: readonly BundleEntry[],
  name: string,
  content: Uint8Array,
): BundleEntry[] {
  return withFittingManifest(entries.map((entry) => (entry.name === name ? { ...entry, content } : entry)));
}

function withFittingManifest(entries: BundleEntry[]): BundleEntry[] {
  return withJson(entries, "manifest.json", (manifest) => {
    for (const file of manifest["files"] as { path: string; size_bytes: number; sha256: string }[]) {
      const { content } = entries.find((entry) => entry.name === file.path)!;
      file.size_bytes = content.byteLength;
      file.sha256 = new Bun.CryptoHasher("sha256").update(content).digest("hex");
    }
  });
}
