import { describe } from "bun:test";
import { writeFileSync } from "node:fs";
import type { Subprocess } from "bun";
import { TemporaryDirectory } from "./temporary-directory.ts";

/** Public addresses that are reached inside without being the machine's own */
const PUBLIC_PREFIX = "93.184.216.0/24";
const IS_ROOT = process.getuid?.() === 0;
const UNSHARE = ["unshare", "--net", "--mount", ...(IS_ROOT ? [] : ["--user", "--map-root-user"])];
const SET_UP = `
  ip link set lo up && ip route add local ${PUBLIC_PREFIX} dev lo &&
  mount --bind "$1/hosts" /etc/hosts && mount --bind "$1/resolv.conf" /etc/resolv.conf &&
  echo ready && exec cat`;

/**
 * A network of its own for the programs started in it, where a public prefix leads to them, with the names of a hosts
 * file. So the product resolves, decides and dials as it does anywhere, and nothing leaves the machine.
 */
export class NetworkNamespace implements AsyncDisposable {
  readonly #directory = new TemporaryDirectory();
  readonly #holder: Subprocess<"pipe", "pipe", "pipe">;

  private constructor(hosts: Record<string, string>, nameserver: string) {
    const lines = Object.entries(hosts).map(([name, address]) => `${address} ${name}\n`);
    writeFileSync(this.#directory.join("hosts"), `127.0.0.1 localhost\n${lines.join("")}`);
    writeFileSync(this.#directory.join("resolv.conf"), `nameserver ${nameserver}\n`);
    this.#holder = Bun.spawn([...UNSHARE, "sh", "-c", SET_UP, "sh", this.#directory.path], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
  }

  static async open(hosts: Record<string, string>, nameserver = "127.0.0.1"): Promise<NetworkNamespace> {
    const namespace = new NetworkNamespace(hosts, nameserver);
    const { value } = await namespace.#holder.stdout.getReader().read();
    if (value !== undefined) return namespace;
    const why = await namespace.#holder.stderr.text();
    await namespace[Symbol.asyncDispose]();
    throw new Error(`there is no network namespace to test in: ${why}`);
  }

  /** What runs the command inside. */
  argv(...command: string[]): string[] {
    const pid = String(this.#holder.pid);
    const enter = ["nsenter", "--target", pid, "--net", "--mount", `--wd=${process.cwd()}`];
    return [...enter, ...(IS_ROOT ? [] : ["--user", "--preserve-credentials"]), ...command];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#holder.kill();
    await this.#holder.exited;
    this.#directory[Symbol.dispose]();
  }
}

/** A `describe` for tests that need one. */
export function describeWithNamespace(title: string, tests: () => void): void {
  const canMake = Bun.which("unshare") !== null && Bun.spawnSync([...UNSHARE, "true"]).exitCode === 0;
  describe.skipIf(!canMake)(canMake ? title : `${title} (no network namespace can be made here)`, tests);
}
