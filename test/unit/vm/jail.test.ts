import { describe, expect, test } from "bun:test";
import { type JailRequest, jailArgv } from "../../../src/vm/jail.ts";

const REQUEST: JailRequest = {
  prefix: "/usr",
  readOnlyPaths: ["/store/base", "/image/rootfs"],
  writablePaths: ["/run/vm"],
  devicePaths: [],
  net: false,
};

/** Paths bound by an option, source and target */
function bindsOf(argv: string[], option: string): [string, string][] {
  return argv.flatMap(
    (text, index) =>
      (text === option ? [[argv[index + 1]!, argv[index + 2]!] as const] : []) as [string, string][],
  );
}

describe("bubblewrap", () => {
  const argv = jailArgv("bwrap", REQUEST);

  test("dies with the server and shares no namespace, capability or environment", () => {
    expect(argv[0]).toBe("bwrap");
    for (const option of ["--die-with-parent", "--unshare-all", "--clearenv"]) expect(argv).toContain(option);
    expect(argv.slice(argv.indexOf("--cap-drop"), argv.indexOf("--cap-drop") + 2)).toEqual([
      "--cap-drop",
      "ALL",
    ]);
    expect(argv.at(-1)).toBe("--");
  });

  test("shows programs, the base and the image read-only, and only the VM's directory writable", () => {
    expect(bindsOf(argv, "--ro-bind")).toEqual([
      ["/usr", "/usr"],
      ["/store/base", "/store/base"],
      ["/image/rootfs", "/image/rootfs"],
    ]);
    expect(bindsOf(argv, "--bind")).toEqual([["/run/vm", "/run/vm"]]);
    expect(bindsOf(argv, "--dev-bind")).toEqual([]);
    for (const hidden of ["/home", "/root", "/etc", "/tmp", "/"])
      expect(bindsOf(argv, "--ro-bind")).not.toContainEqual([hidden, hidden]);
  });

  test("reaches the host's network only for a machine with a network card", () => {
    expect(argv).not.toContain("--share-net");
    expect(argv.join(" ")).not.toContain("resolv.conf");
    expect(jailArgv("bwrap", { ...REQUEST, net: true })).toContain("--share-net");
  });

  test("shows a device only when it is needed", () => {
    const withDevice = jailArgv("bwrap", { ...REQUEST, devicePaths: ["/dev/kvm"] });
    expect(bindsOf(withDevice, "--dev-bind")).toEqual([["/dev/kvm", "/dev/kvm"]]);
  });

  test("shows a VMM outside of /usr", () => {
    const outside = jailArgv("bwrap", { ...REQUEST, prefix: "/nix/store/abc-qemu" });
    expect(bindsOf(outside, "--ro-bind")).toContainEqual(["/nix/store", "/nix/store"]);
    const local = jailArgv("bwrap", { ...REQUEST, prefix: "/usr/local" });
    expect(bindsOf(local, "--ro-bind")).toEqual(bindsOf(argv, "--ro-bind"));
  });
});

test("without bubblewrap the kernel still ends the VMM with the server", () => {
  const argv = jailArgv("setpriv", REQUEST);
  expect(argv.slice(0, 3)).toEqual(["setpriv", "--pdeathsig", "KILL"]);
  expect(argv).toContain("--no-new-privs");
  expect(jailArgv("none", REQUEST)).toEqual([]);
});
