import type { StdioClient, ToolAnswer } from "../test/support/stdio-client.ts";

const SHOWN_CHARACTERS = 300;

export interface StageCall {
  args?: Record<string, unknown>;
  /** What the answer must be an error about; undefined when it must succeed */
  errorNames?: string;
  /** Limit in `ms` (default 60 000) */
  timeoutMs?: number;
}

/** Makes the demo's calls, prints each with its answer, and measures them. */
export class DemoStage implements AsyncDisposable {
  readonly timings: [label: string, ms: number][] = [];
  readonly client: StdioClient;
  readonly #nicknames = new Map<string, string>();

  constructor(client: StdioClient) {
    this.client = client;
  }

  title(text: string): void {
    console.log(`\n== ${text}`);
  }

  /** Throws when the call fails although it must not, or the other way round. */
  async call(tool: string, { args = {}, errorNames, timeoutMs }: StageCall = {}): Promise<ToolAnswer> {
    console.log(this.#nicknamed(`-> ${tool} ${describeArguments(args)}`));
    const onProgress = (message: string) => console.log(`   .. ${message}`);
    const answer = await this.client.call(tool, args, { onProgress, ...(timeoutMs && { timeoutMs }) });
    console.log(this.#nicknamed(`<- ${describeAnswer(answer)}`));
    if (errorNames === undefined) check(!answer.isError, `${tool} failed: ${answer.text}`);
    else
      check(answer.isError && answer.text.includes(errorNames), `${tool} must fail and name ${errorNames}`);
    return answer;
  }

  async open(): Promise<string> {
    const { fields } = await this.call("open_session", { timeoutMs: 300_000 });
    const id = fields["session_id"];
    check(typeof id === "string", "open_session gave no session_id");
    const nickname = `session ${String.fromCharCode(65 + this.#nicknames.size)}`;
    this.#nicknames.set(id, nickname);
    console.log(`   called ${nickname} below`);
    return id;
  }

  /** A run that must end with status 0; gives its stdout. */
  async run(sessionId: string, command: string, more: Record<string, unknown> = {}): Promise<string> {
    const { fields } = await this.call("run", { args: { session_id: sessionId, command, ...more } });
    check(fields["exit_code"] === 0, `${command} ended with ${fields["exit_code"]}: ${fields["stderr"]}`);
    return fields["stdout"] as string;
  }

  async timed<T>(label: string, action: () => Promise<T>): Promise<T> {
    const startedMs = performance.now();
    const result = await action();
    this.timings.push([label, performance.now() - startedMs]);
    return result;
  }

  /** Ids are long; people read "session A". */
  #nicknamed(text: string): string {
    return [...this.#nicknames].reduce((shown, [id, nickname]) => shown.replaceAll(id, nickname), text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client[Symbol.asyncDispose]();
  }
}

export function check(condition: boolean, problem: string): asserts condition {
  if (!condition) throw new Error(problem);
}

function describeArguments({ session_id, command, ...others }: Record<string, unknown>): string {
  const rest = Object.entries(others).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return shorten([session_id, ...rest, command].filter((part) => part !== undefined).join(" | "));
}

function describeAnswer({ isError, text, fields }: ToolAnswer): string {
  if (isError) return shorten(`error: ${text}`);
  if (!("exit_code" in fields)) return shorten(text);
  const notes = [`exit ${fields["exit_code"]}`, ...(fields["timed_out"] === true ? ["timed out"] : [])];
  const output = `${fields["stdout"]}${fields["stderr"]}`.trimEnd();
  return shorten(output === "" ? notes.join(", ") : `${notes.join(", ")} | ${output}`);
}

function shorten(text: string): string {
  return text.length <= SHOWN_CHARACTERS
    ? text
    : `${text.slice(0, SHOWN_CHARACTERS)}… (${text.length} characters)`;
}
