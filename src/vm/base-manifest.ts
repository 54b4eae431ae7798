import { readFile } from "node:fs/promises";
import { z } from "zod";
import { isCheckpointId } from "./checkpoint-store.ts";
import { VmError } from "./vm-error.ts";

/** Of what an engine keeps in the layout of bases */
const SNAPSHOT_PREFIX = "snap-";
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const file = z.object({ bytes: z.int().nonnegative(), sha256 });

/** `<store>/snapshots/<name>/manifest.json`: what a base was made of. Format 1; see docs/adr/0010-base-manifest.md. */
export const baseManifest = z.object({
  format: z.literal(1),
  /** A checkpoint is a base made of a running session */
  kind: z.enum(["base", "checkpoint"]).default("base"),
  name: z.string(),
  /** RFC 3339, for people */
  created: z.string(),
  /** Version of docs/wire/agent.md */
  protocol: z.int(),
  agentBuild: z.string(),
  image: z.object({ kernel: sha256, initramfs: sha256, rootfs: sha256 }),
  vmm: z.object({
    version: z.string(),
    acceleration: z.enum(["kvm", "hvf", "tcg"]),
    /** Model name of the CPU that a hardware-accelerated guest saw; null under tcg */
    hostCpu: z.string().nullable(),
    /** QEMU's arguments without paths; device state only fits the same machine */
    machine: z.array(z.string()),
  }),
  memoryBytes: z.int().positive(),
  cpus: z.int().positive(),
  net: z.boolean(),
  files: z.object({ memory: file, state: file }),
  /** What the session of a checkpoint was cloned from: its name, and the hash of its device state */
  parent: z.object({ name: z.string(), state: sha256 }).optional(),
});
export type BaseManifest = z.infer<typeof baseManifest>;

/** Everything of a manifest that this binary, QEMU, image and configuration determine. */
export type ExpectedBase = Pick<
  BaseManifest,
  "protocol" | "agentBuild" | "image" | "memoryBytes" | "cpus" | "net"
> & {
  vmm: Omit<BaseManifest["vmm"], "acceleration"> & {
    acceleration: BaseManifest["vmm"]["acceleration"] | null;
  };
};

/** Null when there is no base; throws `base_damaged` when its manifest cannot be read as one. */
export async function readBaseManifest(path: string, name: string): Promise<BaseManifest | null> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new VmError("base_damaged", `base '${name}' cannot be read: ${path}. ${rebuildHint(name)}`, error);
  }
  try {
    return baseManifest.parse(JSON.parse(text));
  } catch (error) {
    throw new VmError(
      "base_damaged",
      `base '${name}' has a manifest this binary does not understand. ${rebuildHint(name)}`,
      error,
    );
  }
}

/** What to do about a base that cannot be used. */
export function rebuildHint(name: string): string {
  if (name.startsWith(SNAPSHOT_PREFIX)) return "Delete it, and take a new one of a VM made here";
  return isCheckpointId(name)
    ? `Remove it, and make a new checkpoint: ignition-mcp base rm ${name}`
    : `Rebuild it: ignition-mcp base build ${name}`;
}

/** Why a base does not fit, as a sentence's end, or null when it fits. */
export function mismatch(manifest: BaseManifest, expected: ExpectedBase): string | null {
  const mib = (bytes: number) => `${bytes / 1_048_576} MiB`;
  const differences: [boolean, string][] = [
    [
      manifest.protocol !== expected.protocol,
      `its agent speaks protocol ${manifest.protocol}, this binary ${expected.protocol}`,
    ],
    [manifest.agentBuild !== expected.agentBuild, "it holds another build of the agent than the image"],
    [manifest.image.kernel !== expected.image.kernel, "it was made from another kernel"],
    [manifest.image.initramfs !== expected.image.initramfs, "it was made from another initramfs"],
    [manifest.image.rootfs !== expected.image.rootfs, "it was made from another root file system"],
    [
      manifest.vmm.version !== expected.vmm.version,
      `it was made by QEMU ${manifest.vmm.version}, this is ${expected.vmm.version}`,
    ],
    [
      manifest.memoryBytes !== expected.memoryBytes,
      `it has ${mib(manifest.memoryBytes)} of memory, IGN_MCP_MEM asks for ${mib(expected.memoryBytes)}`,
    ],
    [manifest.cpus !== expected.cpus, `it has ${manifest.cpus} CPUs, IGN_MCP_CPUS asks for ${expected.cpus}`],
    [manifest.net !== expected.net, manifest.net ? "it has a network card" : "it has no network card"],
    [
      expected.vmm.acceleration !== null && manifest.vmm.acceleration !== expected.vmm.acceleration,
      `it runs under ${manifest.vmm.acceleration}, IGN_MCP_ACCEL asks for ${expected.vmm.acceleration}`,
    ],
    [
      manifest.vmm.hostCpu !== null && manifest.vmm.hostCpu !== expected.vmm.hostCpu,
      "it was made on another CPU model, and hardware acceleration needs the same one",
    ],
    [
      manifest.vmm.machine.join("\n") !== expected.vmm.machine.join("\n"),
      "this binary builds its machines differently",
    ],
  ];
  return differences.find(([differs]) => differs)?.[1] ?? null;
}
