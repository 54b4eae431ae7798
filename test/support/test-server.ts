import { expectNoLeftovers, vmsOf } from "./leftovers.ts";
import type { ProcessInfo } from "./processes.ts";
import { EXECUTABLE_PATH, TestHome } from "./real-vm.ts";
import { type CallOptions, StdioClient, type ToolAnswer } from "./stdio-client.ts";

/** The fields `run` answers with. */
export interface RunFields {
  stdout: string;
  stderr: string;
  exit_code: number;
  timed_out: boolean;
  duration_ms: number;
  signal?: string;
  stdout_bytes: number;
  stderr_bytes: number;
  stdout_truncated: boolean;
  stderr_truncated: boolean;
  stdout_path?: string;
  stderr_path?: string;
  stdout_invalid_utf8?: boolean;
  stderr_invalid_utf8?: boolean;
  note?: string;
  /** Of a run that goes on, and of what poll answers */
  running?: boolean;
  run_id?: string;
  cursor?: string;
  more?: boolean;
}

export interface RunArguments {
  timeout_s?: number;
  cwd?: string;
  stdin?: string;
  max_output_bytes?: number;
  background?: boolean;
}

export interface PollArguments {
  cursor?: string;
  wait_s?: number;
  stdin?: string;
  stdin_eof?: boolean;
  signal?: string;
}

/** The compiled server with a home of its own. Its end throws when a VM or a file of it is left. */
export class TestServer implements AsyncDisposable {
  readonly client: StdioClient;
  readonly home: TestHome;

  private constructor(client: StdioClient, home: TestHome) {
    this.client = client;
    this.home = home;
  }

  /** `argv` says what runs the executable, when it is not to be run as it is. */
  static async start(
    extraEnv: Record<string, string> = {},
    argv: (...command: string[]) => string[] = (...command) => command,
  ): Promise<TestServer> {
    const home = new TestHome();
    try {
      const [command = EXECUTABLE_PATH, ...args] = argv(EXECUTABLE_PATH);
      const client = await StdioClient.start({ command, args, env: home.env(extraEnv) });
      return new TestServer(client, home);
    } catch (error) {
      home[Symbol.dispose]();
      throw error;
    }
  }

  get pid(): number {
    return this.client.pid;
  }

  async open(options: CallOptions = {}): Promise<TestSession> {
    const { fields } = await this.client.callOk("open_session", {}, options);
    return new TestSession(this.client, String(fields["session_id"]));
  }

  /** The QEMU processes below the server, without the jails around them. */
  vmms(): ProcessInfo[] {
    return vmsOf(this.pid).filter((info) => info.name.startsWith("qemu-system"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const vms = vmsOf(this.pid);
    try {
      await this.client[Symbol.asyncDispose]();
      await expectNoLeftovers(this.home, vms);
    } finally {
      this.home[Symbol.dispose]();
    }
  }
}

/** One session of a server, by its id. */
export class TestSession {
  readonly id: string;
  readonly #client: StdioClient;

  constructor(client: StdioClient, id: string) {
    this.#client = client;
    this.id = id;
  }

  call(tool: string, args: Record<string, unknown> = {}, options: CallOptions = {}): Promise<ToolAnswer> {
    return this.#client.call(tool, { session_id: this.id, ...args }, options);
  }

  /** Throws when the call is an error; a non-zero exit is none. */
  async run(command: string, args: RunArguments = {}, options: CallOptions = {}): Promise<RunFields> {
    const all = { session_id: this.id, command, ...args };
    return (await this.#client.callOk("run", all, options)).fields as unknown as RunFields;
  }

  async poll(runId: string, args: PollArguments = {}): Promise<RunFields> {
    const all = { session_id: this.id, run_id: runId, ...args };
    return (await this.#client.callOk("poll", all)).fields as unknown as RunFields;
  }

  /** Polls until the end; all of stdout from the cursor on, and the last answer. */
  async pollToEnd(runId: string, cursor = "0:0"): Promise<{ stdout: string; last: RunFields }> {
    let stdout = "";
    for (;;) {
      const last = await this.poll(runId, { cursor, wait_s: 20 });
      stdout += last.stdout;
      cursor = last.cursor!;
      if (!last.running && !last.more) return { stdout, last };
    }
  }

  /** Stdout of a run that must exit with 0. */
  async output(command: string, args: RunArguments = {}): Promise<string> {
    const { exit_code, stdout, stderr } = await this.run(command, args);
    if (exit_code !== 0) throw new Error(`${command.slice(0, 200)} exited with ${exit_code}: ${stderr}`);
    return stdout;
  }

  /** The message of a call that must be an error. */
  async refusal(tool: string, args: Record<string, unknown> = {}): Promise<string> {
    const { isError, text } = await this.call(tool, args);
    if (!isError) throw new Error(`${tool} was expected to fail, and answered ${text.slice(0, 200)}`);
    return text;
  }

  async writeFile(path: string, content: Uint8Array | string): Promise<void> {
    const content_base64 = Buffer.from(content).toString("base64");
    await this.#client.callOk("write_file", { session_id: this.id, path, content_base64 });
  }

  async sha256Of(path: string): Promise<string> {
    return (await this.output(`sha256sum '${path}'`)).split(" ")[0]!;
  }

  /** How many processes in the guest have `marker` in their arguments, which is letters, digits, spaces and dots. */
  async countProcesses(marker: string): Promise<number> {
    // The bracket keeps the counting shell, which has the pattern in its own arguments, from matching itself.
    const pattern = `${marker.slice(0, -1)}[${marker.slice(-1)}]`;
    return Number((await this.run(`pgrep -fc -- '${pattern}'`)).stdout);
  }

  async reset(): Promise<void> {
    await this.#client.callOk("reset", { session_id: this.id });
  }

  async close(): Promise<void> {
    await this.#client.callOk("close", { session_id: this.id });
  }
}

/** Asks until the answer is `true`; throws naming `what` when `withinMs` is over. */
export async function eventually(
  what: string,
  withinMs: number,
  isTrue: () => boolean | Promise<boolean>,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await isTrue())) {
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`);
    await Bun.sleep(50);
  }
}
