import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cgroupObstacle, ownCgroup, VmCgroups } from "../../../src/vm/vm-cgroups.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

const MIB = 1_048_576;

/** Looks like a cgroup; what is written to its files stays there. */
class FakeCgroup extends TemporaryDirectory {
  constructor(controllers = "cpuset cpu io memory pids", pids = `${process.pid}\n`) {
    super();
    writeFileSync(this.join("cgroup.controllers"), `${controllers}\n`);
    writeFileSync(this.join("cgroup.procs"), pids);
    writeFileSync(this.join("cgroup.subtree_control"), "\n");
  }

  read(...names: string[]): string {
    return readFileSync(this.join(...names), "utf8");
  }

  directories(): string[] {
    return readdirSync(this.path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
      .sort();
  }
}

/** As rmdir(2) does on a cgroup, whose files go with it. */
const remove = (path: string) => rmSync(path, { recursive: true });

function busy(): never {
  throw Object.assign(new Error("still has a process"), { code: "EBUSY" });
}

describe("the cgroup of a process", () => {
  const mounts = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

  test("is found below where cgroup v2 is mounted", () => {
    expect(ownCgroup("0::/user.slice/a.scope\n", mounts)).toBe("/sys/fs/cgroup/user.slice/a.scope");
    expect(ownCgroup("9:memory:/x\n0::/\n", mounts)).toBe("/sys/fs/cgroup/");
    expect(ownCgroup("9:memory:/x\n", mounts)).toBeNull();
    expect(ownCgroup("0::/x\n", "31 23 0:28 / /sys/fs/cgroup rw - tmpfs none rw\n")).toBeNull();
  });

  test("is of no use without a memory controller, when shared, or when not ours", () => {
    using good = new FakeCgroup();
    using shared = new FakeCgroup("memory", `1\n${process.pid}\n`);
    using poor = new FakeCgroup("hugetlb");
    expect(cgroupObstacle(good.path)).toBeNull();
    expect(cgroupObstacle(shared.path)).toContain("shared with other processes");
    expect(cgroupObstacle(poor.path)).toContain("no memory controller");
    expect(cgroupObstacle("/nowhere")).toContain("not delegated to it (ENOENT)");
    expect(cgroupObstacle(null)).toContain("no cgroup v2");
    for (const { path } of [shared, poor]) expect(VmCgroups.open(path)).toBeNull();
    expect(shared.directories()).toEqual([]);
  });
});

describe("cgroups of VMs", () => {
  test("bound memory, threads and processor time, and the server steps aside for them", () => {
    using parent = new FakeCgroup();
    using cgroups = VmCgroups.open(parent.path, remove)!;
    expect(parent.read("server", "cgroup.procs")).toBe(String(process.pid));
    expect(parent.read("cgroup.subtree_control")).toBe("+memory +pids +cpu");
    const cgroup = cgroups.create({ memoryBytes: 512 * MIB, cpus: 2 });
    cgroup.enter(4711);
    expect(parent.read("vm-1", "memory.max")).toBe(String(768 * MIB));
    expect(parent.read("vm-1", "pids.max")).toBe("64");
    expect(parent.read("vm-1", "cpu.max")).toBe("200000 100000");
    expect(parent.read("vm-1", "cgroup.procs")).toBe("4711");
    cgroup[Symbol.dispose]();
    expect(parent.directories()).toEqual(["server"]);
  });

  test("bound what the controllers at hand can", () => {
    using parent = new FakeCgroup("memory");
    using cgroups = VmCgroups.open(parent.path, remove)!;
    cgroups.create({ memoryBytes: MIB, cpus: 1 });
    expect(readdirSync(parent.join("vm-1"))).toEqual(["memory.max"]);
  });

  test("leave nothing, also when a VM's process went late", () => {
    using parent = new FakeCgroup();
    let isBusy = true;
    const cgroups = VmCgroups.open(parent.path, (path) =>
      isBusy && path.includes("vm-") ? busy() : remove(path),
    )!;
    cgroups.create({ memoryBytes: MIB, cpus: 1 })[Symbol.dispose]();
    expect(parent.directories()).toEqual(["server", "vm-1"]);
    isBusy = false;
    cgroups[Symbol.dispose]();
    expect(parent.directories()).toEqual([]);
    expect(parent.read("cgroup.subtree_control")).toBe("-memory -pids -cpu");
    expect(parent.read("cgroup.procs")).toBe(String(process.pid));
  });

  test("are not used when the server cannot step aside, and nothing is left of the attempt", () => {
    using parent = new FakeCgroup();
    mkdirSync(parent.join("server", "cgroup.procs"), { recursive: true });
    expect(VmCgroups.open(parent.path, remove)).toBeNull();
    expect(existsSync(parent.join("server"))).toBe(false);
  });

  test("a limit that is refused is an error that says where", () => {
    using parent = new FakeCgroup();
    using cgroups = VmCgroups.open(parent.path, remove)!;
    mkdirSync(parent.join("vm-1"));
    expect(() => cgroups.create({ memoryBytes: MIB, cpus: 1 })).toThrow(parent.join("vm-1"));
  });
});
