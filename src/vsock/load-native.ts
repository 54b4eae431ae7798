import { dlopen, ptr } from "bun:ffi";
import { closeSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { NativeAddon } from "./native-addon.ts";

/** How the addon came into the process */
export type NativeOrigin = "native-memfd" | "native-file";

export interface LoadedAddon {
  addon: NativeAddon;
  origin: NativeOrigin;
}

const MFD_CLOEXEC = 1;

const BUILT_ADDON_PATH = join(import.meta.dir, "../../build/native/Release/ignition_vsock.node");

/**
 * Where the addon lies. `bun build --compile` embeds the file this import names;
 * Bun refuses the import when it runs the source, and then the built file is used where it is.
 */
const addonPath: string = await import("../../build/native/Release/ignition_vsock.node", {
  with: { type: "file" },
}).then(
  (module: { default: string }) => module.default,
  () => BUILT_ADDON_PATH,
);

/**
 * Loads the addon: from memory, which works with a read-only or noexec temporary directory;
 * else by its path, which for a compiled program makes Bun write it to a temporary file. Null when neither works.
 */
export function loadNative(onFailure?: (origin: NativeOrigin, cause: unknown) => void): LoadedAddon | null {
  const attempts: [NativeOrigin, () => NativeAddon][] = [
    ["native-memfd", () => loadFromMemory(readFileSync(addonPath))],
    ["native-file", () => loadFile(addonPath)],
  ];
  for (const [origin, load] of attempts) {
    try {
      return { addon: load(), origin };
    } catch (cause) {
      onFailure?.(origin, cause);
    }
  }
  return null;
}

function loadFile(path: string): NativeAddon {
  const module = { exports: {} };
  process.dlopen(module, path);
  return module.exports as NativeAddon;
}

function loadFromMemory(image: Uint8Array): NativeAddon {
  const libc = dlopen("libc.so.6", { memfd_create: { args: ["ptr", "u32"], returns: "i32" } });
  const name = Buffer.from("ignition_vsock\0");
  const fd = libc.symbols.memfd_create(ptr(name), MFD_CLOEXEC);
  libc.close();
  if (fd < 0) throw new Error("memfd_create failed");
  try {
    for (let at = 0; at < image.byteLength; ) at += writeSync(fd, image, at);
    return loadFile(`/proc/self/fd/${fd}`);
  } finally {
    closeSync(fd);
  }
}
