import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";

export interface StdioClientOptions {
  command: string;
  args?: string[];
  /** Added to the SDK's own short default environment */
  env: Record<string, string>;
  /** Called with what the server writes to stderr; default: collected in `stderr` only */
  onStderr?: (text: string) => void;
  /** Limit for start and `initialize`, in `ms` (default 60 000) */
  startMs?: number;
}

export interface CallOptions {
  /** Limit for the answer, in `ms` (default 100 000) */
  timeoutMs?: number;
  signal?: AbortSignal;
  /** Asks for progress and gets each message with its number */
  onProgress?: (message: string, progress: number) => void;
}

export interface ToolAnswer {
  isError: boolean;
  /** `structuredContent`; empty for errors without one */
  fields: Record<string, unknown>;
  /** All text blocks, joined */
  text: string;
}

/** The official client connected to a server process of its own. */
export class StdioClient implements AsyncDisposable {
  readonly client: Client;
  readonly pid: number;
  /** Everything the server wrote to stderr so far */
  stderr = "";
  #transport: StdioClientTransport;

  private constructor(client: Client, transport: StdioClientTransport, pid: number) {
    this.client = client;
    this.#transport = transport;
    this.pid = pid;
  }

  static async start(options: StdioClientOptions): Promise<StdioClient> {
    const { command, args = [], env, startMs = 60_000 } = options;
    const transport = new StdioClientTransport({ command, args, env, stderr: "pipe" });
    const client = new Client({ name: "ignition-test", version: "1" });
    let early = "";
    let started: StdioClient | undefined;
    transport.stderr?.on("data", (chunk: Buffer) => {
      const text = chunk.toString();
      if (started) started.stderr += text;
      else early += text;
      options.onStderr?.(text);
    });
    try {
      await client.connect(transport, { timeout: startMs });
    } catch (error) {
      await transport.close();
      throw new Error(`${command} did not answer initialize; stderr: ${early}`, { cause: error });
    }
    started = new StdioClient(client, transport, transport.pid ?? 0);
    started.stderr = early;
    return started;
  }

  async call(
    tool: string,
    args: Record<string, unknown> = {},
    options: CallOptions = {},
  ): Promise<ToolAnswer> {
    const { timeoutMs = 100_000, signal, onProgress } = options;
    const result = (await this.client.callTool({ name: tool, arguments: args }, undefined, {
      timeout: timeoutMs,
      ...(signal && { signal }),
      ...(onProgress && { onprogress: ({ message, progress }) => onProgress(message ?? "", progress) }),
    })) as CallToolResult;
    const texts = result.content.map((block) => (block.type === "text" ? block.text : ""));
    return {
      isError: result.isError === true,
      fields: (result.structuredContent ?? {}) as Record<string, unknown>,
      text: texts.join(""),
    };
  }

  /** As `call`, and throws with the server's text when the answer is an error. */
  async callOk(
    tool: string,
    args: Record<string, unknown> = {},
    options: CallOptions = {},
  ): Promise<ToolAnswer> {
    const answer = await this.call(tool, args, options);
    if (answer.isError) throw new Error(`${tool} failed: ${answer.text}`);
    return answer;
  }

  /** Closes stdin, then escalates as the SDK does: SIGTERM after 2 s, SIGKILL after 4 s. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#transport.close();
  }
}
