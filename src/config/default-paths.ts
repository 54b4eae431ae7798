import { existsSync, realpathSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";
import type { Environment } from "./config.ts";

/** `~/.local/share/ignition`: bases, and the image when it was installed for one user. */
export function dataDirectory(env: Environment): string {
  const home = env["HOME"];
  return join(home && isAbsolute(home) ? home : userInfo().homedir, ".local/share/ignition");
}

/** The first image directory that exists; the one in the home directory when none does. */
export function imageDirectory(env: Environment, executable = executableDirectory()): string {
  const installed = join(dataDirectory(env), "image");
  const places = [join(executable, "image"), resolve(executable, "../share/ignition/image"), installed];
  return places.find((place) => existsSync(place)) ?? installed;
}

/** Directory of the real executable behind any symlink; `dist/` when it runs from source. */
function executableDirectory(): string {
  const compiled = import.meta.dir.startsWith("/$bunfs/");
  return compiled ? dirname(realpathSync(process.execPath)) : resolve(import.meta.dir, "../../dist");
}
