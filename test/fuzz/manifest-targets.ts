import { ok } from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { openImage } from "../../src/image/image.ts";
import { ImageError } from "../../src/image/image-error.ts";
import { mismatch, readBaseManifest } from "../../src/vm/base-manifest.ts";
import { findDamage } from "../../src/vm/file-seal.ts";
import { VmError } from "../../src/vm/vm-error.ts";
import { TemporaryDirectory } from "../support/temporary-directory.ts";
import type { FuzzTarget } from "./fuzz-target.ts";

const WORDS = [
  '"format":1',
  "null",
  "1e999",
  "-1",
  '"__proto__":{}',
  "[]",
  "{}",
  '"files":',
  '"memoryBytes":',
  `"${"a".repeat(64)}"`,
];

export const baseManifest: FuzzTarget = {
  name: "base-manifest",
  corpusPath: "corpus/base-manifest",
  words: WORDS,
  tries: 1500,
  async check(bytes) {
    using directory = new TemporaryDirectory();
    const path = directory.join("manifest.json");
    writeFileSync(path, bytes);
    try {
      const manifest = (await readBaseManifest(path, "name"))!;
      const reason = mismatch(manifest, { ...manifest, cpus: manifest.cpus + 1 });
      ok(reason !== null, "another number of CPUs fits");
      ok(mismatch(manifest, manifest) === null || manifest.vmm.hostCpu !== null, "it does not fit itself");
    } catch (error) {
      if (!(error instanceof VmError)) throw error;
      ok(error.code === "base_damaged" && error.message.length < 300, error.message);
    }
  },
};

export const imageManifest: FuzzTarget = {
  name: "image-manifest",
  corpusPath: "corpus/image-manifest",
  words: WORDS,
  tries: 1500,
  async check(bytes) {
    using directory = new TemporaryDirectory();
    const at = (name: string) => directory.join(name);
    for (const name of ["vmlinuz", "initramfs.cpio", "rootfs.ext4"]) writeFileSync(at(name), "x");
    writeFileSync(at("image.json"), bytes);
    const paths = {
      kernelPath: at("vmlinuz"),
      initramfsPath: at("initramfs.cpio"),
      rootfsPath: at("rootfs.ext4"),
      imageManifestPath: at("image.json"),
    };
    try {
      ok((await openImage(paths)).manifest.kernel.bytes === 1, "a size that is wrong was taken");
    } catch (error) {
      if (!(error instanceof ImageError)) throw error;
      ok(error.code === "image_invalid", error.message);
    }
  },
};

/** A seal only saves time: whatever is in it, a file that is not as it was is found. */
export const seal: FuzzTarget = {
  name: "seal",
  corpusPath: "corpus/seal",
  words: ["{}", "[]", "null", '"', ":", '"/x":', "1"],
  tries: 1000,
  async check(bytes) {
    using directory = new TemporaryDirectory();
    const [path, sealPath] = [directory.join("memory.bin"), directory.join("verified.json")];
    writeFileSync(path, "damaged");
    writeFileSync(sealPath, bytes);
    const file = { path, bytes: 7, sha256: new Bun.CryptoHasher("sha256").update("whole!!").digest("hex") };
    ok((await findDamage([file], sealPath)) === file, "the damage was not found");
  },
};
