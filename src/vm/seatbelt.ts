import { realpathSync } from "node:fs";
import { homedir } from "node:os";
import type { JailRequest } from "./jail-request.ts";
import type { QemuProgram } from "./qemu/find-qemu.ts";

/**
 * The profile for macOS's Seatbelt: no network but sockets in the VM's directory, no program but QEMU, no writing
 * outside that directory, nothing of the home directory but what a VM is made of. The last rule that matches decides.
 * Never run on a Mac.
 */
export function seatbeltProfile(qemu: QemuProgram, request: JailRequest): string {
  const readable = [qemu.prefix, ...request.readOnlyPaths, ...request.writablePaths];
  return [
    "(version 1)",
    "(allow default)",
    ...(request.net ? [] : ["(deny network*)"]),
    ...request.writablePaths.map((path) => `(allow network* (subpath ${quoted(path)}))`),
    "(deny process-fork)",
    "(deny process-exec)",
    `(allow process-exec (literal ${quoted(qemu.path)}) (subpath ${quoted(qemu.prefix)}))`,
    "(deny file-write*)",
    `(allow file-write* (literal "/dev/null")${subpaths(request.writablePaths)})`,
    `(deny file-read* (subpath ${quoted(homedir())}) (subpath "/private/var/root"))`,
    "(allow file-read-metadata)",
    `(allow file-read*${subpaths(readable)})`,
    "",
  ].join("\n");
}

export function seatbeltArgv(qemu: QemuProgram, request: JailRequest): string[] {
  // Rules are held against paths without links, and /tmp is one there.
  const profile = seatbeltProfile(
    { ...qemu, path: realpathSync(qemu.path) },
    {
      ...request,
      readOnlyPaths: request.readOnlyPaths.map((path) => realpathSync(path)),
      writablePaths: request.writablePaths.map((path) => realpathSync(path)),
    },
  );
  return ["/usr/bin/sandbox-exec", "-p", profile];
}

function subpaths(paths: string[]): string {
  return paths.map((path) => ` (subpath ${quoted(path)})`).join("");
}

/** The profile's language is a Lisp; its strings take a backslash before quotes and backslashes. */
function quoted(path: string): string {
  return `"${path.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
