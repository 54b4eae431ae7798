import { describe, expect, test } from "bun:test";
import type { BootSource, MachineSpec } from "../../../src/vm/machine-spec.ts";
import { bootArgv, cloneArgv, machineFingerprint } from "../../../src/vm/qemu/argv.ts";

const SPEC: MachineSpec = {
  acceleration: "tcg",
  memoryBytes: 512 * 1_048_576,
  cpus: 2,
  net: false,
  rootfsPath: "/image/rootfs.ext4",
};
const SOURCE: BootSource = {
  kernelPath: "/image/vmlinuz",
  initramfsPath: "/image/initramfs",
  tscKhz: 2_000_000,
};

/** All values of an option that may come several times */
function valuesOf(argv: string[], option: string): string[] {
  return argv.filter((_, index) => argv[index - 1] === option);
}

const clone = cloneArgv(SPEC, "/run/vm", "/store/base");
const boot = bootArgv(SPEC, SOURCE, "/run/vm", "/store/base");

describe("a clone", () => {
  test("maps the base's memory privately and opens it read-only", () => {
    expect(valuesOf(clone, "-object")).toEqual([
      "memory-backend-file,id=mem,size=536870912,share=off,readonly=on,rom=off,mem-path=/store/base/memory.bin",
    ]);
    expect(valuesOf(clone, "-M")).toEqual(["microvm,memory-backend=mem,ioapic2=off"]);
  });

  test("waits for its state, boots nothing, and writes to no disk", () => {
    expect(valuesOf(clone, "-incoming")).toEqual(["defer"]);
    expect(clone).not.toContain("-kernel");
    expect(valuesOf(clone, "-drive")).toEqual([
      "id=root,file=/image/rootfs.ext4,format=raw,if=none,readonly=on",
    ]);
  });

  test("of a running machine stays paused, and takes a state without a configuration section", () => {
    const forked = cloneArgv(SPEC, "/run/vm", "/store/chk", "checkpoint");
    expect(valuesOf(forked, "-global")).toEqual(["migration.send-configuration=off"]);
    expect(forked).toContain("-S");
    expect(clone).not.toContain("-S");
  });

  test("that outlives its owner serves all its sockets, and is the same machine", () => {
    const lasting = cloneArgv(SPEC, "/run/vm", "/store/base", "base", "listens");
    const sockets = valuesOf(lasting, "-chardev");
    expect(sockets).toHaveLength(3);
    for (const socket of sockets) expect(socket).toEndWith(",server=on,wait=off");
    const withoutSockets = (argv: string[]) => argv.filter((text) => !text.startsWith("socket,"));
    expect(withoutSockets(lasting)).toEqual(withoutSockets(clone));
  });

  test("has sockets in its own directory only, and serves none but the agent's", () => {
    expect(valuesOf(clone, "-chardev")).toEqual([
      "socket,id=qmp,path=/run/vm/qmp.sock",
      "socket,id=console,path=/run/vm/console.sock",
      "socket,id=agent,path=/run/vm/vsock.sock,server=on,wait=off",
    ]);
    expect(clone).toContain("virtserialport,chardev=agent,name=ignition.agent");
  });
});

describe("any machine", () => {
  test.each([
    ["clone", clone],
    ["boot", boot],
  ])("of a %s is confined and has no defaults", (_, argv) => {
    expect(valuesOf(argv, "-sandbox")).toEqual([
      "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
    ]);
    for (const option of ["-nodefaults", "-no-user-config", "-no-reboot"]) expect(argv).toContain(option);
    expect(valuesOf(argv, "-display")).toEqual(["none"]);
  });

  test("has a network only when asked for", () => {
    const withNet = cloneArgv({ ...SPEC, net: true }, "/run/vm", "/store/base");
    expect(valuesOf(withNet, "-netdev")).toEqual(["user,id=net"]);
    expect(withNet).toContain("virtio-net-device,netdev=net");
    for (const argv of [clone, boot]) expect(argv.join(" ")).not.toContain("net");
  });

  test("takes its size from the spec", () => {
    expect(valuesOf(clone, "-m")).toEqual(["512M"]);
    expect(valuesOf(clone, "-smp")).toEqual(["2"]);
  });

  test("emulates every CPU feature, or shows the host's CPU", () => {
    expect(valuesOf(clone, "-accel")[0]).toStartWith("tcg,");
    expect(valuesOf(clone, "-cpu")).toEqual(["max,-erms,-fsrm"]);
    const accelerated = cloneArgv({ ...SPEC, acceleration: "kvm" }, "/run/vm", "/store/base");
    expect(valuesOf(accelerated, "-accel")).toEqual(["kvm"]);
    expect(valuesOf(accelerated, "-cpu")).toEqual(["host"]);
  });

  test("keeps commas in paths out of QEMU's option syntax", () => {
    const argv = cloneArgv({ ...SPEC, rootfsPath: "/a,b/r" }, "/run,x", "/store,readonly=off");
    expect(valuesOf(argv, "-object")[0]).toEndWith("mem-path=/store,,readonly=off/memory.bin");
    expect(valuesOf(argv, "-drive")[0]).toContain("file=/a,,b/r,format=raw");
    expect(valuesOf(argv, "-chardev")[0]).toBe("socket,id=qmp,path=/run,,x/qmp.sock");
  });
});

describe("a boot", () => {
  test("writes its memory to the base, and is the clone's machine otherwise", () => {
    expect(valuesOf(boot, "-object")).toEqual([
      "memory-backend-file,id=mem,size=536870912,share=on,mem-path=/store/base/memory.bin",
    ]);
    const isMemory = (argument: string) => argument.startsWith("memory-backend-file");
    const machine = clone.slice(0, clone.indexOf("-incoming"));
    expect(boot.slice(0, machine.length).filter((text) => !isMemory(text))).toEqual(
      machine.filter((text) => !isMemory(text)),
    );
    expect(valuesOf(boot, "-kernel")).toEqual(["/image/vmlinuz"]);
    expect(valuesOf(boot, "-initrd")).toEqual(["/image/initramfs"]);
  });

  test("ends the VMM when the guest panics, and gives an emulated guest its clock's rate", () => {
    const [line] = valuesOf(boot, "-append");
    expect(line).toContain("panic=-1");
    expect(line).toContain("tsc_early_khz=2000000");
    const [unknown] = valuesOf(bootArgv(SPEC, { ...SOURCE, tscKhz: 0 }, "/v", "/b"), "-append");
    expect(unknown).not.toContain("tsc");
  });
});

describe("a machine's fingerprint", () => {
  test("holds no path", () => {
    expect(machineFingerprint(SPEC).join(" ")).not.toMatch(/\/(run|store|image)/);
    expect(machineFingerprint(SPEC)).toEqual(machineFingerprint({ ...SPEC, rootfsPath: "/elsewhere" }));
  });

  test.each<Partial<MachineSpec>>([
    { cpus: 1 },
    { memoryBytes: 1_048_576 },
    { net: true },
    { acceleration: "kvm" },
  ])("differs with %j", (change) => {
    expect(machineFingerprint({ ...SPEC, ...change })).not.toEqual(machineFingerprint(SPEC));
  });
});
