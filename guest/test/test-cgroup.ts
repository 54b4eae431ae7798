import { mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";

/** Where this user may make cgroups, or undefined. */
export function writableCgroups(): string | undefined {
  const mount = readFileSync("/proc/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" "))
    .find((fields) => fields[2] === "cgroup2")?.[1];
  if (!mount) return undefined;
  const directory = `${mount}/ignition-test-${process.pid}`;
  try {
    mkdirSync(directory);
    return directory;
  } catch {
    return undefined; // not ours to change: the session fallback is tested alone
  }
}

/** Killed processes hold their cgroup for a moment. */
export async function removeTree(directory: string) {
  for (const entry of readdirSync(directory, { withFileTypes: true }))
    if (entry.isDirectory()) await removeTree(`${directory}/${entry.name}`);
  for (let attempt = 0; ; attempt++) {
    try {
      rmdirSync(directory);
      return;
    } catch (error) {
      if (attempt === 1500) throw error;
      await Bun.sleep(20);
    }
  }
}
