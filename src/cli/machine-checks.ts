import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { baseNameFor } from "../config/base-name-for.ts";
import type { Config } from "../config/config.ts";
import { loadEgressPolicy } from "../egress/egress-profile.ts";
import { mostConnections } from "../egress/shared-places.ts";
import { openImage } from "../image/image.ts";
import { listBases } from "../vm/inspect-bases.ts";
import { findJail } from "../vm/jail.ts";
import { findQemu } from "../vm/qemu/find-qemu.ts";
import { RuntimeDirectory } from "../vm/runtime-directory.ts";
import { cgroupObstacle, ownCgroup } from "../vm/vm-cgroups.ts";
import { carrierInUse } from "../vsock/connect.ts";
import type { Check, Finding } from "./doctor.ts";

/** What a session needs of this machine and this configuration. No VM is started. */
export function machineChecks(config: Config): Check[] {
  return [
    { id: "qemu", look: checkQemu },
    { id: "image", look: () => checkImage(config) },
    { id: "base", look: () => checkBase(config) },
    { id: "acceleration", look: checkAcceleration },
    { id: "jail", look: checkJail },
    { id: "carrier", look: checkCarrier },
    { id: "egress", look: () => checkEgress(config) },
    { id: "runtime_directory", look: checkRuntimeDirectory },
  ];
}

async function checkQemu(): Promise<Finding> {
  const { path, version } = await findQemu();
  return { status: "ok", what: `${path} is QEMU ${version}` };
}

async function checkImage(config: Config): Promise<Finding> {
  const { kernelPath, rootfsPath } = await openImage(config);
  return { status: "ok", what: `${kernelPath} with ${rootfsPath}` };
}

async function checkBase(config: Config): Promise<Finding> {
  const name = baseNameFor(config);
  const base = (await listBases(config)).find((candidate) => candidate.name === name);
  if (!base) {
    return {
      status: "warn",
      what: `there is no base '${name}' yet; the first open_session builds it, or do it now: ignition-mcp base build ${name}`,
    };
  }
  if (base.unusable !== null) return { status: "fail", what: base.unusable };
  return { status: "ok", what: `'${name}' in ${config.storePath}` };
}

async function checkEgress({ net, egress }: Config): Promise<Finding> {
  if (net)
    return { status: "warn", what: "sessions have a network card, and no rules about what they reach" };
  const { kind, rules } = await loadEgressPolicy(egress);
  if (kind === "deny_all") return { status: "ok", what: "sessions reach nothing outside" };
  const inAll = `connections at once, of all sessions: ${mostConnections()}`;
  if (kind === "allow_all")
    return { status: "ok", what: `sessions reach every public address, by proxy; ${inAll}` };
  const { allowSni, allowCidrs } = rules;
  return {
    status: "ok",
    what: `sessions reach what the profile lists, by proxy; names: ${allowSni.length}, address ranges: ${allowCidrs.length}; ${inAll}`,
  };
}

async function checkAcceleration(): Promise<Finding> {
  if (process.platform !== "linux") return { status: "ok", what: "found out when a base is built" };
  try {
    await access("/dev/kvm", constants.R_OK | constants.W_OK);
    return {
      status: "ok",
      what: "/dev/kvm can be opened; whether it works is found out when a base is built",
    };
  } catch (error) {
    const absent = (error as NodeJS.ErrnoException).code === "ENOENT";
    const fix = absent
      ? "turn on virtualisation in the firmware, if the machine has it"
      : "let this user open it: sudo usermod -aG kvm $USER";
    return {
      status: "warn",
      what: `/dev/kvm ${absent ? "does not exist" : "cannot be opened"}; sessions work, several times slower; ${fix}`,
    };
  }
}

async function checkJail(): Promise<Finding> {
  const { kind, gaps } = await findJail(await findQemu());
  if (gaps.length > 0) return { status: "warn", what: `${kind}: ${gaps.join("; ")}` };
  const obstacle = cgroupObstacle(ownCgroup());
  const bounded =
    obstacle === null ? "" : `. Their memory is bounded by address space only, since ${obstacle}`;
  const asRoot =
    process.getuid?.() === 0 ? ". As root its user id outside is still 0; prefer a plain user" : "";
  return {
    status: "ok",
    what: `VMs run inside bubblewrap, as nobody, with QEMU's own files and under limits${bounded}${asRoot}`,
  };
}

function checkCarrier(): Finding {
  const name = carrierInUse();
  if (name !== "twin") return { status: "ok", what: `the native addon (${name})` };
  return {
    status: "warn",
    what: "the native addon does not load; its twin in TypeScript works, slower for large files",
  };
}

function checkRuntimeDirectory(): Finding {
  using directory = RuntimeDirectory.open();
  return { status: "ok", what: directory.path };
}
