import { readFile, stat } from "node:fs/promises";

/** The names a machine knows without asking, as in /etc/hosts. Read again when it has changed. */
export class HostsFile {
  readonly #path: string;
  #version = "";
  #addresses = new Map<string, string[]>();

  constructor(path: string) {
    this.#path = path;
  }

  /** The addresses of a canonical name, IPv4 first; empty for a name that is not there, or without the file. */
  async addressesOf(name: string): Promise<string[]> {
    try {
      const { mtimeMs, size, ino } = await stat(this.#path);
      const version = `${ino} ${size} ${mtimeMs}`;
      if (version !== this.#version) {
        this.#addresses = parseHosts(await readFile(this.#path, "latin1"));
        this.#version = version;
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      return [];
    }
    return this.#addresses.get(name) ?? [];
  }
}

function parseHosts(text: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    for (const name of names.map((each) => each.toLowerCase()))
      found.set(name, [...(found.get(name) ?? []), address]);
  }
  for (const addresses of found.values()) addresses.sort((a, b) => Number(isV6(a)) - Number(isV6(b)));
  return found;
}

function isV6(address: string): boolean {
  return address.includes(":");
}
