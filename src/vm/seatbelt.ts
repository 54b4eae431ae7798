import { homedir } from "node:os";
import type { JailRequest } from "./jail.ts";
import type { QemuProgram } from "./qemu/find-qemu.ts";

/**
 * The profile of macOS's sandbox: no network but local sockets, no program but QEMU, no writing outside the VM's
 * directory, nothing of the home directory but what a VM is made of. The last rule that matches decides.
 * Never run on a Mac.
 */
export function seatbeltProfile(qemu: QemuProgram, request: JailRequest): string {
  const readable = [qemu.prefix, ...request.readOnlyPaths, ...request.writablePaths];
  return [
    "(version 1)",
    "(allow default)",
    ...(request.net ? [] : ["(deny network*)"]),
    "(allow network* (local unix-socket) (remote unix-socket))",
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
  return ["/usr/bin/sandbox-exec", "-p", seatbeltProfile(qemu, request)];
}

function subpaths(paths: string[]): string {
  return paths.map((path) => ` (subpath ${quoted(path)})`).join("");
}

/** The profile's language is a Lisp; its strings take a backslash before quotes and backslashes. */
function quoted(path: string): string {
  return `"${path.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
