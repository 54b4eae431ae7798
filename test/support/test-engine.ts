import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { expectNoLeftovers, remainingVms } from "./leftovers.ts";
import type { ProcessInfo } from "./processes.ts";
import { EXECUTABLE_PATH, TestHome } from "./real-vm.ts";
import { eventually } from "./test-server.ts";

const START_MS = 60_000;

export interface EngineAnswer {
  status: number;
  text: string;
  /** Undefined when it is not JSON */
  json: unknown;
}

/** The compiled engine on a socket of its own, and the home it can be started in again. */
export class TestEngine implements AsyncDisposable {
  readonly home = new TestHome();
  readonly socketPath = join(this.home.path, "api.sock");
  readonly workDir = join(this.home.path, "engine");
  readonly extraEnv: Record<string, string>;
  #child: Subprocess<"ignore", "ignore", "pipe"> | null = null;
  #stderr: Promise<string> = Promise.resolve("");

  /** Not yet started. */
  constructor(extraEnv: Record<string, string> = {}) {
    this.extraEnv = extraEnv;
  }

  static async start(extraEnv: Record<string, string> = {}): Promise<TestEngine> {
    const engine = new TestEngine(extraEnv);
    await engine.start();
    return engine;
  }

  get env(): Record<string, string> {
    return this.home.env({
      ANVIL_API_ADDR: `unix:${this.socketPath}`,
      IGN_ENGINE_DIR: this.workDir,
      IGN_MCP_LOG: "info",
      ...this.extraEnv,
    });
  }

  /** Starts it, after `kill` or `end`; resolves when it answers. */
  async start(args: string[] = ["--end-vms"]): Promise<void> {
    const child = Bun.spawn([EXECUTABLE_PATH, "daemon", ...args], {
      env: this.env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#child = child;
    this.#stderr = new Response(child.stderr).text();
    await eventually("the engine answers", START_MS, async () => {
      if (child.exitCode !== null) throw new Error(`the engine ended: ${await this.#stderr}`);
      return existsSync(this.socketPath) && (await this.#isUp());
    });
  }

  async #isUp(): Promise<boolean> {
    try {
      return (await this.request("GET", "/health")).status < 500;
    } catch {
      // A socket an earlier engine left, on which nobody listens yet.
      return false;
    }
  }

  async request(method: string, path: string, init: RequestInit = {}): Promise<EngineAnswer> {
    const response = await this.fetch(method, path, init);
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json") ?? false;
    return { status: response.status, text, json: isJson ? JSON.parse(text) : undefined };
  }

  /** The answer as it comes. */
  fetch(method: string, path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`http://engine${path}`, {
      method,
      ...init,
      unix: this.socketPath,
      timeout: false,
    } as RequestInit);
  }

  get(path: string): Promise<EngineAnswer> {
    return this.request("GET", path);
  }

  post(path: string, body: unknown = {}, init: RequestInit = {}): Promise<EngineAnswer> {
    const headers = { "content-type": "application/json" };
    return this.request("POST", path, { body: JSON.stringify(body), headers, ...init });
  }

  async vm(request: object = {}): Promise<string> {
    const { status, text, json } = await this.post("/vms", request);
    if (status !== 201) throw new Error(`no VM: ${status} ${text}`);
    return (json as { vm_id: string }).vm_id;
  }

  /** Output of a task that must succeed. */
  async task(id: string, prompt: string): Promise<string> {
    const { status, text, json } = await this.post(`/vms/${id}/tasks`, { prompt });
    if (status !== 200) throw new Error(`the task failed: ${status} ${text}`);
    return (json as { output: string }).output;
  }

  /** QEMU processes of this home, whoever their parent is. */
  vmms(): ProcessInfo[] {
    return remainingVms(this.home).filter((info) => info.name.startsWith("qemu-system"));
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }

  /** Ends it by a signal and resolves with its status and what it said. */
  async end(signal: NodeJS.Signals): Promise<{ status: number | null; stderr: string }> {
    const child = this.#child;
    if (!child) throw new Error("the engine does not run");
    this.#child = null;
    child.kill(signal);
    await child.exited;
    return { status: child.exitCode, stderr: await this.#stderr };
  }

  /** Ends all and throws when anything is left. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      if (this.#child?.exitCode === null) await this.end("SIGTERM");
      await expectNoLeftovers(this.home);
    } finally {
      for (const { pid } of remainingVms(this.home)) process.kill(pid, "SIGKILL");
      this.home[Symbol.dispose]();
    }
  }
}
