import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { bubblewrapArgv, bubblewrapChoices } from "../../../src/vm/jail-bubblewrap.ts";
import { limitsArgv } from "../../../src/vm/jail-limits.ts";
import type { JailRequest } from "../../../src/vm/jail-request.ts";
import { broadRoot, librariesIn, minimalRoot } from "../../../src/vm/jail-root.ts";
import { seatbeltProfile } from "../../../src/vm/seatbelt.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

const MIB = 1_048_576;
const REQUEST: JailRequest = {
  readOnlyPaths: ["/store/base", "/image/rootfs"],
  writablePaths: ["/run/vm"],
  devicePaths: [],
  net: false,
  memoryBytes: 512 * MIB,
};
const QEMU = { path: "/usr/bin/qemu", version: "10.0.2", prefix: "/usr" };

/** Paths bound by an option, source and target */
function bindsOf(argv: string[], option: string): [string, string][] {
  return argv.flatMap((text, index) =>
    text === option ? [[argv[index + 1]!, argv[index + 2]!] satisfies [string, string]] : [],
  );
}

describe("bubblewrap", () => {
  const choices = bubblewrapChoices("/bin/bwrap", ["--ro-bind", "/qemu", "/qemu"], broadRoot(QEMU));
  const strongest = choices[0]!;
  const argv = bubblewrapArgv(strongest, REQUEST);

  test("dies with the server and shares no namespace, capability or environment", () => {
    expect(argv[0]).toBe("/bin/bwrap");
    for (const option of ["--die-with-parent", "--unshare-all", "--clearenv", "--disable-userns"])
      expect(argv).toContain(option);
    expect(argv.join(" ")).toContain("--cap-drop ALL --unshare-user --uid 65534 --gid 65534");
    expect(argv.at(-1)).toBe("--");
  });

  test("lets a VMM that outlives its owner live, and is otherwise the same", () => {
    const lasting = bubblewrapArgv(strongest, { ...REQUEST, outlives: true });
    expect(lasting).toEqual(argv.filter((option) => option !== "--die-with-parent"));
  });

  test("shows the VMM, the base and the image read-only, and only the VM's directory writable", () => {
    const shown = ["/qemu", "/store/base", "/image/rootfs"];
    expect(bindsOf(argv, "--ro-bind")).toEqual(shown.map((path) => [path, path]));
    expect(bindsOf(argv, "--bind")).toEqual([["/run/vm", "/run/vm"]]);
    expect(bindsOf(argv, "--dev-bind")).toEqual([["/dev/null", "/dev/null"]]);
    // Behind all mounts, since it makes the root they are in read-only.
    expect(argv.indexOf("--remount-ro")).toBeGreaterThan(argv.lastIndexOf("--bind"));
  });

  test("reaches the host's network only for a machine with a network card", () => {
    expect(argv).not.toContain("--share-net");
    expect(argv.join(" ")).not.toContain("resolv.conf");
    expect(bubblewrapArgv(strongest, { ...REQUEST, net: true })).toContain("--share-net");
  });

  test("shows a device only when it is needed", () => {
    const withDevice = bubblewrapArgv(strongest, { ...REQUEST, devicePaths: ["/dev/kvm"] });
    expect(bindsOf(withDevice, "--dev-bind")).toEqual([
      ["/dev/null", "/dev/null"],
      ["/dev/kvm", "/dev/kvm"],
    ]);
  });

  test("is tried with less when the whole does not work, and then says what is missing", () => {
    expect(choices.map((choice) => choice.gaps.length)).toEqual([0, 0, 1, 1, 1, 2]);
    expect(choices.at(-1)!.gaps.join()).toMatch(/all of \/usr.*user namespaces/);
    const untold = bubblewrapChoices("/bin/bwrap", null, broadRoot(QEMU));
    expect(untold.every((choice) => choice.gaps.length > 0)).toBe(true);
  });
});

describe("the root of a jail", () => {
  test("is made of what the program is linked with", () => {
    const text = [
      "/usr/bin/qemu:",
      "\tlinux-vdso.so.1 (0x00007ffd)",
      "\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f4b)",
      "\t/lib64/ld-linux-x86-64.so.2 (0x00007f5c)",
      "/usr/lib/qemu/accel-tcg.so:",
      "\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f4b)",
      "\tlibown.so => /opt/a user/lib/libown.so (0x00007f6d)",
    ].join("\n");
    expect(librariesIn(text)).toEqual([
      "/lib/x86_64-linux-gnu/libz.so.1",
      "/lib64/ld-linux-x86-64.so.2",
      "/opt/a user/lib/libown.so",
    ]);
    expect(librariesIn(`${text}\n\tliblost.so => not found`)).toEqual([]);
    expect(librariesIn(null)).toEqual([]);
  });

  test("cannot be told for a script around the program", async () => {
    using directory = new TemporaryDirectory();
    const path = directory.join("bin", "qemu");
    mkdirSync(directory.join("bin"));
    writeFileSync(path, "#!/bin/sh\necho /usr/share\n");
    chmodSync(path, 0o755);
    expect(await minimalRoot({ path, version: "10.0.2", prefix: directory.path })).toBeNull();
  });

  test("shows all of /usr, and the surroundings of a VMM outside of it, when it cannot be told", () => {
    expect(bindsOf(broadRoot(QEMU), "--ro-bind")).toContainEqual(["/usr", "/usr"]);
    const outside = broadRoot({ ...QEMU, prefix: "/nix/store/abc-qemu" });
    expect(bindsOf(outside, "--ro-bind")).toContainEqual(["/nix/store", "/nix/store"]);
    expect(broadRoot({ ...QEMU, prefix: "/usr/local" })).toEqual(broadRoot(QEMU));
  });
});

describe("limits", () => {
  const unlimited = "Limit  Soft Limit  Hard Limit  Units\nMax open files  1024  1048576  files\n";

  test("bound memory, files and descriptors, and allow no core dump", () => {
    const argv = limitsArgv("/bin/prlimit", REQUEST, unlimited);
    expect(argv).toEqual([
      "/bin/prlimit",
      "--core=0",
      `--as=${(512 + 2048) * MIB}`,
      `--fsize=${64 * MIB}`,
      "--nofile=128",
      "--",
    ]);
    expect(limitsArgv("/bin/prlimit", { ...REQUEST, net: true }, unlimited)).toContain("--nofile=1024");
  });

  test("stay below those of the server, which a plain user cannot raise", () => {
    const tight = "Max file size  100  4096  bytes\nMax open files  50  100  files\n";
    const argv = limitsArgv("/bin/prlimit", REQUEST, tight);
    expect(argv).toContain("--fsize=4096");
    expect(argv).toContain("--nofile=100");
  });
});

describe("the Seatbelt profile", () => {
  const profile = seatbeltProfile({ ...QEMU, prefix: '/opt/a "b"' }, REQUEST);

  test("denies the network, other programs, and writing outside the VM's directory", () => {
    expect(profile).toContain('(deny network*)\n(allow network* (subpath "/run/vm"))\n');
    expect(profile).toContain("(deny process-fork)\n(deny process-exec)\n(allow process-exec (literal");
    expect(profile).toContain(
      '(deny file-write*)\n(allow file-write* (literal "/dev/null") (subpath "/run/vm"))',
    );
    expect(seatbeltProfile(QEMU, { ...REQUEST, net: true })).not.toContain("(deny network*)");
  });

  test("takes paths with quotes in them for paths", () => {
    expect(profile).toContain('(subpath "/opt/a \\"b\\"")');
  });
});
