import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { randomId } from "../../../src/base/random-id.ts";
import {
  type BaseManifest,
  type ExpectedBase,
  mismatch,
  readBaseManifest,
} from "../../../src/vm/base-manifest.ts";
import type { VmError } from "../../../src/vm/vm-error.ts";
import { rejection } from "../../support/rejection.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

const SHA = "a".repeat(64);
const OTHER_SHA = "b".repeat(64);
const MANIFEST: BaseManifest = {
  format: 1,
  kind: "base",
  name: "tools-base",
  created: "2024-06-01T00:00:00Z",
  protocol: 1,
  agentBuild: "b0",
  image: { kernel: SHA, initramfs: SHA, rootfs: SHA },
  vmm: { version: "10.0.2", acceleration: "tcg", hostCpu: null, machine: ["-M", "microvm"] },
  memoryBytes: 512 * 1_048_576,
  cpus: 1,
  net: false,
  files: { memory: { bytes: 1, sha256: SHA }, state: { bytes: 2, sha256: SHA } },
};
const { image, vmm } = MANIFEST;

describe("a base fits", () => {
  test("when everything it was made of is here", () => {
    expect(mismatch(MANIFEST, MANIFEST)).toBeNull();
  });

  test("whatever its acceleration, when none is forced", () => {
    expect(mismatch(MANIFEST, { ...MANIFEST, vmm: { ...vmm, acceleration: null } })).toBeNull();
  });

  test("on any CPU, when it is emulated", () => {
    expect(mismatch(MANIFEST, { ...MANIFEST, vmm: { ...vmm, hostCpu: "Some CPU" } })).toBeNull();
  });
});

describe("a base does not fit", () => {
  const differences: [string, Partial<ExpectedBase>, string][] = [
    ["protocol", { protocol: 2 }, "its agent speaks protocol 1, this binary 2"],
    ["agent", { agentBuild: "b1" }, "it holds another build of the agent than the image"],
    ["kernel", { image: { ...image, kernel: OTHER_SHA } }, "it was made from another kernel"],
    ["initramfs", { image: { ...image, initramfs: OTHER_SHA } }, "it was made from another initramfs"],
    ["root", { image: { ...image, rootfs: OTHER_SHA } }, "it was made from another root file system"],
    ["QEMU", { vmm: { ...vmm, version: "9.2.0" } }, "it was made by QEMU 10.0.2, this is 9.2.0"],
    ["memory", { memoryBytes: 1024 * 1_048_576 }, "it has 512 MiB of memory, IGN_MCP_MEM asks for 1024 MiB"],
    ["CPUs", { cpus: 2 }, "it has 1 CPUs, IGN_MCP_CPUS asks for 2"],
    ["network", { net: true }, "it has no network card"],
    [
      "acceleration",
      { vmm: { ...vmm, acceleration: "kvm" } },
      "it runs under tcg, IGN_MCP_ACCEL asks for kvm",
    ],
    ["machine", { vmm: { ...vmm, machine: ["-M", "q35"] } }, "this binary builds its machines differently"],
  ];
  test.each(differences)("when the %s differs, and says so", (_, change, reason) => {
    expect(mismatch(MANIFEST, { ...MANIFEST, ...change })).toBe(reason);
  });

  test("when it was accelerated on another CPU model", () => {
    const accelerated = { ...MANIFEST, vmm: { ...vmm, acceleration: "kvm" as const, hostCpu: "CPU A" } };
    const here = { ...accelerated, vmm: { ...accelerated.vmm, hostCpu: "CPU B" } };
    expect(mismatch(accelerated, accelerated)).toBeNull();
    expect(mismatch(accelerated, here)).toContain("another CPU model");
  });
});

describe("reading a manifest", () => {
  test("gives what was written, and null when there is none", async () => {
    using directory = new TemporaryDirectory();
    const path = directory.join("manifest.json");
    expect(await readBaseManifest(path, "x")).toBeNull();
    writeFileSync(path, JSON.stringify(MANIFEST));
    expect(await readBaseManifest(path, "x")).toEqual(MANIFEST);
  });

  test("written before there were checkpoints is a base's", async () => {
    using directory = new TemporaryDirectory();
    const { kind: _, ...old } = MANIFEST;
    writeFileSync(directory.join("m"), JSON.stringify(old));
    expect(await readBaseManifest(directory.join("m"), "x")).toEqual(MANIFEST);
  });

  test("keeps what a checkpoint was made of", async () => {
    using directory = new TemporaryDirectory();
    const parent = { name: "tools-base", state: OTHER_SHA };
    const checkpoint: BaseManifest = { ...MANIFEST, kind: "checkpoint", parent };
    writeFileSync(directory.join("m"), JSON.stringify(checkpoint));
    expect(await readBaseManifest(directory.join("m"), "x")).toEqual(checkpoint);
  });

  test("of a checkpoint in vain does not advise to build what cannot be built", async () => {
    using directory = new TemporaryDirectory();
    writeFileSync(directory.join("m"), "{");
    const id = randomId("chk_");
    const { message } = await rejection(readBaseManifest(directory.join("m"), id));
    expect(message).toEndWith(`Remove it, and make a new checkpoint: ignition-mcp base rm ${id}`);
  });

  test.each([
    ["not JSON", "{"],
    ["of another format", JSON.stringify({ ...MANIFEST, format: 2 })],
    ["without its hashes", JSON.stringify({ ...MANIFEST, image: { kernel: "x" } })],
    ["empty", ""],
  ])("that is %s is damage, with the next step", async (_, text) => {
    using directory = new TemporaryDirectory();
    writeFileSync(directory.join("m"), text);
    const error = await rejection<VmError>(readBaseManifest(directory.join("m"), "tools"));
    expect(error.code).toBe("base_damaged");
    expect(error.message).toContain("base 'tools'");
    expect(error.message).toEndWith("Rebuild it: ignition-mcp base build tools");
  });

  test("that cannot be read is damage too", async () => {
    using directory = new TemporaryDirectory();
    expect(await rejection(readBaseManifest(directory.path, "x"))).toMatchObject({ code: "base_damaged" });
  });
});
