import { readFile, stat } from "node:fs/promises";
import { basename } from "node:path";
import { z } from "zod";
import { sha256OfFile } from "../base/file-hash.ts";
import { ImageError } from "./image-error.ts";

const part = z.object({
  file: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: z.int().positive(),
});

/** image.json, written by scripts/build-image beside the files it names. */
const imageManifest = z.object({
  format: z.literal(1),
  kernel: part,
  initramfs: part,
  rootfs: part,
  kernel_release: z.string(),
  agent: z.object({ build: z.string(), protocol: z.int() }),
  arch: z.string(),
});
type ImageManifest = z.infer<typeof imageManifest>;

export interface ImagePaths {
  kernelPath: string;
  initramfsPath: string;
  rootfsPath: string;
  imageManifestPath: string;
}

/** Kernel, initramfs and read-only root, with what their manifest says of them. */
export interface Image extends ImagePaths {
  manifest: ImageManifest;
}

/** Reads the manifest and checks that its files are there with their sizes; `verifyImage` also reads their content. */
export async function openImage(paths: ImagePaths): Promise<Image> {
  const manifest = await readManifest(paths.imageManifestPath);
  for (const [path, expected] of parts(paths, manifest)) {
    const bytes = await sizeOf(path);
    if (bytes === null)
      throw new ImageError(
        "image_missing",
        `the image has no ${basename(path)}: ${path} is missing. ${buildHint}`,
      );
    if (bytes !== expected.bytes) {
      throw new ImageError(
        "image_invalid",
        `${path} has ${bytes} bytes, its manifest says ${expected.bytes}. ${buildHint}`,
      );
    }
  }
  return { ...paths, manifest };
}

/** Reads every byte of the image. Rejects with `image_invalid` naming the first file that differs. */
export async function verifyImage(image: Image, signal?: AbortSignal): Promise<void> {
  for (const [path, expected] of parts(image, image.manifest)) {
    if ((await sha256OfFile(path, signal)) !== expected.sha256) {
      throw new ImageError("image_invalid", `${path} is not the file its manifest describes. ${buildHint}`);
    }
  }
}

const buildHint = "Build the image: scripts/build-image";

function parts(paths: ImagePaths, manifest: ImageManifest) {
  return [
    [paths.kernelPath, manifest.kernel],
    [paths.initramfsPath, manifest.initramfs],
    [paths.rootfsPath, manifest.rootfs],
  ] as const;
}

async function readManifest(path: string): Promise<ImageManifest> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new ImageError("image_missing", `there is no image manifest at ${path}. ${buildHint}`, error);
  }
  try {
    return imageManifest.parse(JSON.parse(text));
  } catch (error) {
    throw new ImageError("image_invalid", `${path} is no image manifest of format 1. ${buildHint}`, error);
  }
}

async function sizeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new ImageError("image_invalid", `${path} cannot be read`, error);
  }
}
