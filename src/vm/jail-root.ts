import { lstatSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { QemuProgram } from "./qemu/find-qemu.ts";

/** Directories of a distribution that hold libraries and nothing else: one mount instead of dozens. */
const LIBRARY_DIRECTORY = /^(\/usr)?(\/local)?\/(lib64|lib\/[a-z0-9_]+-linux-[a-z0-9]+)$/;
const LIBRARY_LINE = /^\s*(?:\S+ => )?(\/\S.*) \(0x[0-9a-f]+\)$/gm;

/**
 * Arguments for bwrap that show `qemu`, the libraries it is linked with, its accelerators and its firmware, and nothing
 * else. Null when that cannot be told, as for a script around the program.
 */
export async function minimalRoot(qemu: QemuProgram): Promise<string[] | null> {
  const program = realpathSync(qemu.path);
  const accelerators = await acceleratorsOf(qemu);
  const [libraries, firmware] = await Promise.all([
    linesOf(["ldd", program, ...accelerators]).then(librariesIn),
    linesOf([program, "-L", "help"]).then((text) => text?.split("\n").filter(isDirectory) ?? []),
  ]);
  if (libraries.length === 0 || firmware.length === 0) return null;
  const files = [program, ...accelerators, ...libraries];
  return [
    ...unique(files.flatMap(shownFor)).flatMap(readOnly),
    ...unique(firmware.map((path) => realpathSync(path))).flatMap(readOnly),
    ...unique(files.map(topOf)).flatMap(linkAt),
    ...(qemu.path === program ? [] : ["--symlink", program, qemu.path]),
    ...["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"],
  ];
}

/** Arguments for bwrap that show all programs, and the directory around a QEMU that is installed elsewhere. */
export function broadRoot(qemu: QemuProgram): string[] {
  const outsideUsr = qemu.prefix !== "/usr" && !qemu.prefix.startsWith("/usr/");
  return [
    ...readOnly("/usr"),
    ...["/lib", "/lib64", "/bin", "/sbin"].flatMap((path) => [...linkAt(path), ...directoryAt(path)]),
    ...["/etc/ld.so.cache", "/etc/alternatives"].flatMap((path) => ["--ro-bind-try", path, path]),
    ...["--proc", "/proc", "--dev", "/dev"],
    ...(outsideUsr ? readOnly(dirname(qemu.prefix)) : []),
  ];
}

/** Paths in what `ldd` printed, for one program or several. Empty when a library is missing, or none is linked. */
export function librariesIn(text: string | null): string[] {
  if (text === null || text.includes("=> not found")) return [];
  return unique([...text.matchAll(LIBRARY_LINE)].map((match) => match[1]!));
}

/** Some distributions build QEMU's accelerators as modules, which it loads by name. */
async function acceleratorsOf({ prefix }: QemuProgram): Promise<string[]> {
  const triplet = `${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu`;
  const directories = ["lib", "lib64", `lib/${triplet}`].map((name) => join(prefix, name, "qemu"));
  const found = await Promise.all(
    directories.filter(isDirectory).map(async (directory) => {
      const names = await readdir(directory);
      return names.filter((name) => /^accel-.*\.so$/.test(name)).map((name) => join(directory, name));
    }),
  );
  return unique(found.flat());
}

/** What to show so that `file` can be opened by its name: its directory or itself, and what it links to. */
function shownFor(file: string): string[] {
  const named = join(realpathSync(dirname(file)), basename(file));
  return [named, realpathSync(file)].map((path) =>
    LIBRARY_DIRECTORY.test(dirname(path)) ? dirname(path) : path,
  );
}

function topOf(path: string): string {
  return `/${path.split("/")[1]}`;
}

/** The link at `path`, such as /lib → usr/lib, as it is outside. */
function linkAt(path: string): string[] {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return isLink ? ["--symlink", readlinkSync(path), path] : [];
}

function directoryAt(path: string): string[] {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ? readOnly(path) : [];
}

function isDirectory(path: string): boolean {
  return path.startsWith("/") && (statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false);
}

function readOnly(path: string): string[] {
  return ["--ro-bind", path, path];
}

function unique(paths: string[]): string[] {
  return [...new Set(paths)];
}

/** What a program prints, or null when it does not end well. */
async function linesOf(argv: string[]): Promise<string | null> {
  const program = Bun.which(argv[0]!);
  if (program === null) return null;
  const child = Bun.spawn([program, ...argv.slice(1)], { stdin: "ignore", stdout: "pipe", stderr: "ignore" });
  const [text, code] = await Promise.all([child.stdout.text(), child.exited]);
  return code === 0 ? text : null;
}
