import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "../../src/base/logger.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { Engine } from "../../src/engine/engine.ts";
import { loadEngineSettings } from "../../src/engine/engine-settings.ts";
import { TokenList } from "../../src/engine/http/token-list.ts";
import { FakeMachines, type StartFakeRun } from "./fake-machines.ts";
import { TemporaryDirectory } from "./temporary-directory.ts";

/** An answer, read to its end. */
export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** Undefined when it is not JSON */
  json: unknown;
}

/** An engine over machines without guests, asked in this process. */
export class FakeEngine implements AsyncDisposable {
  readonly directory: TemporaryDirectory;
  readonly machines: FakeMachines;
  readonly logged: { level: string; fields: object; message: string }[] = [];
  readonly env: Record<string, string>;
  engine!: Engine;

  private constructor(env: Record<string, string>, startRun?: StartFakeRun) {
    this.directory = new TemporaryDirectory();
    this.machines = new FakeMachines(this.directory.join("machines"), startRun);
    this.env = {
      IGN_ENGINE_DIR: this.directory.join("engine"),
      IGN_ENGINE_PROFILES: this.directory.join("profiles"),
      IGN_ENGINE_DISK_FLOOR_MIB: "0",
      ...env,
    };
  }

  static async open(env: Record<string, string> = {}, startRun?: StartFakeRun): Promise<FakeEngine> {
    const fake = new FakeEngine(env, startRun);
    await fake.start();
    return fake;
  }

  async start(): Promise<void> {
    const settings = loadEngineSettings(this.env, loadConfig({}));
    this.engine = await Engine.open(settings, {
      machines: this.machines,
      tokens: new TokenList(this.env),
      log: this.#logger(),
    });
  }

  /** Ends it as a signal would, and starts another one in the same directory. */
  async restart(): Promise<void> {
    await this.engine.close({ endVms: false });
    await this.start();
  }

  /** Starts another one in the same directory as if this one had been killed: it neither ends nor tidies anything. */
  async crash(): Promise<void> {
    // The kernel would close what it has open.
    for (const { wall } of this.engine.parts.flocks.list()) await wall.close();
    rmSync(join(this.engine.parts.paths.root, "engine.lock"));
    await this.start();
  }

  async request(method: string, path: string, init: RequestInit = {}): Promise<Answer> {
    const response = await this.engine.app.request(path, { method, ...init });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json") ?? false;
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: isJson ? JSON.parse(text) : undefined,
    };
  }

  get(path: string): Promise<Answer> {
    return this.request("GET", path);
  }

  send(method: string, path: string, body: unknown): Promise<Answer> {
    const text = JSON.stringify(body);
    const headers = { "content-type": "application/json", "content-length": String(Buffer.byteLength(text)) };
    return this.request(method, path, { body: text, headers });
  }

  post(path: string, body: unknown = {}): Promise<Answer> {
    return this.send("POST", path, body);
  }

  /** Id of a new VM. */
  async vm(request: object = {}): Promise<string> {
    const { status, text, json } = await this.post("/vms", request);
    if (status !== 201) throw new Error(`no VM: ${status} ${text}`);
    return (json as { vm_id: string }).vm_id;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engine.close({ endVms: true });
    this.directory[Symbol.dispose]();
  }

  #logger(): Logger {
    const at = (level: string) => (fields: object, message: string) => {
      this.logged.push({ level, fields, message });
    };
    return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  }
}
