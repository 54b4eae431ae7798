import { mkdtempSync, rmSync } from "node:fs";
import { EXECUTABLE_PATH, STORE_PATH } from "./real-vm.ts";

const START_MS = 60_000;
const END_MS = 60_000;

/** The compiled engine on a free port of the loopback, with a work directory of its own. Its end ends its VMs. */
export class EngineProcess implements AsyncDisposable {
  readonly url: string;
  readonly workPath: string;
  readonly #child: Bun.Subprocess;

  private constructor(child: Bun.Subprocess, url: string, workPath: string) {
    this.#child = child;
    this.url = url;
    this.workPath = workPath;
  }

  /** `extraEnv` is added to what the engine needs of this environment. Its stderr is passed on. */
  static async start(extraEnv: Record<string, string> = {}): Promise<EngineProcess> {
    const workPath = mkdtempSync("/tmp/ign-eng-"); // short: socket paths below it must fit into 107 bytes
    const child = Bun.spawn([EXECUTABLE_PATH, "daemon", "--end-vms"], {
      env: { ...engineEnvironment(workPath), ...extraEnv },
      stdio: ["ignore", "inherit", "pipe"],
    });
    const url = await whenListening(child);
    if (url !== null) return new EngineProcess(child, url, workPath);
    child.kill("SIGKILL");
    await child.exited;
    rmSync(workPath, { recursive: true, force: true });
    throw new Error(`the engine did not say within ${START_MS} ms where it listens; its stderr is above`);
  }

  get pid(): number {
    return this.#child.pid;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGTERM");
    const killer = setTimeout(() => this.#child.kill("SIGKILL"), END_MS);
    const status = await this.#child.exited;
    clearTimeout(killer);
    rmSync(this.workPath, { recursive: true, force: true });
    if (status !== 0) throw new Error(`the engine ended with ${this.#child.signalCode ?? status}`);
  }
}

function engineEnvironment(workPath: string): Record<string, string> {
  const passed = Object.entries(process.env).filter(([name]) =>
    /^(IGN_MCP_|PATH$|HOME$|XDG_|TMPDIR$)/.test(name),
  );
  const defaults = { IGN_MCP_STORE: STORE_PATH, IGN_MCP_ACCEL: "tcg" };
  const own = { ANVIL_API_ADDR: "127.0.0.1:0", IGN_ENGINE_DIR: workPath };
  return { ...defaults, ...(Object.fromEntries(passed) as Record<string, string>), ...own };
}

/** The URL the engine tells on stderr, the rest of which goes to ours; null when it ends or is late. */
async function whenListening(child: Bun.Subprocess<"ignore", "inherit", "pipe">): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const late = setTimeout(() => resolve(null), START_MS);
  const decoder = new TextDecoder();
  let text = "";
  const relay = async () => {
    for await (const chunk of child.stderr) {
      process.stderr.write(chunk);
      text = (text + decoder.decode(chunk, { stream: true })).slice(-4096);
      const url = /listens on (http:\S+)/.exec(text)?.[1];
      if (url) resolve(url);
    }
    resolve(null);
  };
  relay().catch(() => resolve(null));
  const url = await promise;
  clearTimeout(late);
  return url;
}
