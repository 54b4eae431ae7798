import { join } from "node:path";
import {
  AGENT_PORT_NAME,
  AGENT_SOCKET,
  type BootSource,
  CONSOLE_SOCKET,
  type MachineSpec,
  MEMORY_FILE,
  QMP_SOCKET,
} from "../machine-spec.ts";

/** Translated code QEMU may keep, in MiB: bounds a clone's private memory at no visible cost in speed. */
const TRANSLATION_CACHE_MIB = 64;

/**
 * All the translator can do, but for the fast string flags: with them the guest's kernel copies by `rep movsb`, which is
 * emulated byte by byte. Without them files move about twice as fast.
 */
const EMULATED_CPU = "max,-erms,-fsrm";

/** A second interrupt controller would bring places for 16 more devices, which take 0.7 MiB of each clone. */
const MACHINE = "microvm,memory-backend=mem,ioapic2=off";

/** A running machine's state has no configuration section, and says that it runs: `-S` keeps the clone paused. */
const OF_RUNNING = ["-global", "migration.send-configuration=off", "-S"];

const LISTENING = ",server=on,wait=off";

/** Whether QEMU connects to the sockets of its monitor and console, or listens on them for one owner after another. */
export type MonitorSockets = "connects" | "listens";

/** Arguments that boot `spec` from its kernel with `<baseDir>/memory.bin` as shared RAM. */
export function bootArgv(spec: MachineSpec, source: BootSource, vmDir: string, baseDir: string): string[] {
  return [
    ...machineArgv(spec, vmDir, `share=on,mem-path=${escaped(join(baseDir, MEMORY_FILE))}`),
    "-kernel",
    source.kernelPath,
    "-initrd",
    source.initramfsPath,
    "-append",
    kernelCommandLine(spec, source),
  ];
}

/**
 * Arguments that make the same machine over the same RAM file, mapped privately and opened read-only.
 * It waits for `migrate-incoming`.
 */
export function cloneArgv(
  spec: MachineSpec,
  vmDir: string,
  baseDir: string,
  kind: "base" | "checkpoint" = "base",
  sockets: MonitorSockets = "connects",
): string[] {
  const memory = `share=off,readonly=on,rom=off,mem-path=${escaped(join(baseDir, MEMORY_FILE))}`;
  return [
    ...machineArgv(spec, vmDir, memory, sockets),
    ...(kind === "checkpoint" ? OF_RUNNING : []),
    "-incoming",
    "defer",
  ];
}

/** Without paths: two machines with the same fingerprint can restore each other's state. */
export function machineFingerprint(spec: MachineSpec): string[] {
  return machineArgv({ ...spec, rootfsPath: "ROOTFS" }, "DIR", "mem-path=MEMORY");
}

function machineArgv(
  spec: MachineSpec,
  vmDir: string,
  memory: string,
  sockets: MonitorSockets = "connects",
): string[] {
  const monitor = sockets === "listens" ? LISTENING : "";
  return [
    ...["-M", MACHINE],
    ...["-accel", accelerator(spec)],
    ...["-cpu", spec.acceleration === "tcg" ? EMULATED_CPU : "host"],
    ...["-smp", String(spec.cpus)],
    ...["-m", `${spec.memoryBytes / 1_048_576}M`],
    ...["-object", `memory-backend-file,id=mem,size=${spec.memoryBytes},${memory}`],
    ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"],
    ...["-chardev", `socket,id=qmp,path=${escaped(join(vmDir, QMP_SOCKET))}${monitor}`],
    ...["-mon", "chardev=qmp,mode=control"],
    ...["-chardev", `socket,id=console,path=${escaped(join(vmDir, CONSOLE_SOCKET))}${monitor}`],
    ...["-serial", "chardev:console"],
    ...["-drive", `id=root,file=${escaped(spec.rootfsPath)},format=raw,if=none,readonly=on`],
    ...["-device", "virtio-blk-device,drive=root"],
    ...["-device", "virtio-serial-device,max_ports=2"],
    ...["-chardev", `socket,id=agent,path=${escaped(join(vmDir, AGENT_SOCKET))}${LISTENING}`],
    ...["-device", `virtserialport,chardev=agent,name=${AGENT_PORT_NAME}`],
    ...["-device", "virtio-rng-device"],
    ...(spec.net ? ["-netdev", "user,id=net", "-device", "virtio-net-device,netdev=net"] : []),
    ...["-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"],
  ];
}

function accelerator(spec: MachineSpec): string {
  return spec.acceleration === "tcg" ? `tcg,tb-size=${TRANSLATION_CACHE_MIB}` : spec.acceleration;
}

/**
 * The guest is disposable and alone in its VM, so what protects one guest process from another is left out;
 * measured gains are in guest/README.md. `panic=-1` with `-no-reboot` ends the VMM when the guest panics.
 */
function kernelCommandLine(spec: MachineSpec, source: BootSource): string {
  const clock =
    spec.acceleration === "tcg" && source.tscKhz > 0
      ? [`tsc_early_khz=${source.tscKhz}`, "tsc=reliable", "no_timer_check"]
      : [];
  return [
    "console=ttyS0 quiet loglevel=4 panic=-1 reboot=t",
    ...clock,
    "mitigations=off init_on_alloc=0 lsm= apparmor=0 audit=0",
  ].join(" ");
}

/** QEMU separates options by commas; a doubled comma is a literal one. */
function escaped(path: string): string {
  return path.replaceAll(",", ",,");
}
