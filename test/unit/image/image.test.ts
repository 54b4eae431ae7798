import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { type ImagePaths, openImage, verifyImage } from "../../../src/image/image.ts";
import type { ImageError } from "../../../src/image/image-error.ts";
import { rejection } from "../../support/rejection.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

/** A small image whose manifest is true. */
class TestImage extends TemporaryDirectory {
  readonly paths: ImagePaths = {
    kernelPath: this.join("vmlinuz"),
    initramfsPath: this.join("initramfs.cpio"),
    rootfsPath: this.join("rootfs.ext4"),
    imageManifestPath: this.join("image.json"),
  };
  readonly manifest: Record<string, unknown> = {
    format: 1,
    kernel: describePart(this.paths.kernelPath),
    initramfs: describePart(this.paths.initramfsPath),
    rootfs: describePart(this.paths.rootfsPath),
    kernel_release: "6.1.0",
    agent: { build: "b0", protocol: 1 },
    arch: "x86_64",
  };

  constructor() {
    super();
    this.writeManifest({});
  }

  writeManifest(change: object): void {
    writeFileSync(this.paths.imageManifestPath, JSON.stringify({ ...this.manifest, ...change }));
  }
}

function describePart(path: string) {
  const content = `content of ${path}`;
  writeFileSync(path, content);
  const sha256 = createHash("sha256").update(content).digest("hex");
  return { file: path.split("/").at(-1)!, sha256, bytes: content.length };
}

describe("opening an image", () => {
  test("gives its paths and what its manifest says", async () => {
    using image = new TestImage();
    const opened = await openImage(image.paths);
    expect(opened).toMatchObject({ ...image.paths, manifest: image.manifest });
    await verifyImage(opened);
  });

  test("without a manifest or a part says which is missing and how to build it", async () => {
    using image = new TestImage();
    rmSync(image.paths.initramfsPath);
    const part = await rejection<ImageError>(openImage(image.paths));
    expect(part.code).toBe("image_missing");
    expect(part.message).toContain("no initramfs.cpio");
    expect(part.message).toEndWith("Build the image: scripts/build-image");
    rmSync(image.paths.imageManifestPath);
    const manifest = await rejection<ImageError>(openImage(image.paths));
    expect(manifest).toMatchObject({ code: "image_missing" });
    expect(manifest.message).toContain(image.paths.imageManifestPath);
  });

  test("whose part has another size says so", async () => {
    using image = new TestImage();
    writeFileSync(image.paths.kernelPath, "short");
    const error = await rejection<ImageError>(openImage(image.paths));
    expect(error.code).toBe("image_invalid");
    expect(error.message).toContain("vmlinuz has 5 bytes, its manifest says");
  });

  test.each([
    ["another format", { format: 2 }],
    ["no agent", { agent: null }],
    ["a hash that is none", { kernel: { file: "vmlinuz", sha256: "x", bytes: 1 } }],
    ["a part of no bytes", { kernel: { file: "vmlinuz", sha256: "a".repeat(64), bytes: 0 } }],
  ])("whose manifest has %s is invalid", async (_, change) => {
    using image = new TestImage();
    image.writeManifest(change);
    expect(await rejection(openImage(image.paths))).toMatchObject({ code: "image_invalid" });
  });
});

describe("verifying an image", () => {
  test.each(["kernelPath", "initramfsPath", "rootfsPath"] as const)(
    "finds one wrong byte in %s",
    async (part) => {
      using image = new TestImage();
      const opened = await openImage(image.paths);
      const content = readFileSync(image.paths[part]);
      content[3]! ^= 1;
      writeFileSync(image.paths[part], content);
      const error = await rejection<ImageError>(verifyImage(opened));
      expect(error.code).toBe("image_invalid");
      expect(error.message).toContain(image.paths[part]);
    },
  );

  test("stops when the caller gives up", async () => {
    using image = new TestImage();
    const verifying = verifyImage(await openImage(image.paths), AbortSignal.abort(new Error("enough")));
    expect((await rejection(verifying)).message).toBe("enough");
  });
});
