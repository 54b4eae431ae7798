import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import type { AdapterConfig } from "../../../src/anvil/adapter-config.ts";
import { AnvilTools } from "../../../src/anvil/anvil-tools.ts";
import { createMcpServer } from "../../../src/mcp/server.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";
import { FakeDaemon } from "./fake-daemon.ts";

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** The adapter in front of a fake daemon, with the official client connected to it. */
export class Adapter implements AsyncDisposable {
  readonly client: Client;
  readonly daemon: FakeDaemon;
  readonly directory: TemporaryDirectory;
  readonly #tools: AnvilTools;

  private constructor(client: Client, daemon: FakeDaemon, directory: TemporaryDirectory, tools: AnvilTools) {
    this.client = client;
    this.daemon = daemon;
    this.directory = directory;
    this.#tools = tools;
  }

  /** `settings` may be made of paths in the directory the adapter gets. */
  static async start(
    settings: (directory: TemporaryDirectory) => Partial<AdapterConfig> = () => ({}),
  ): Promise<Adapter> {
    const daemon = new FakeDaemon();
    const directory = new TemporaryDirectory();
    const config: AdapterConfig = {
      foundFilePath: null,
      hosts: [{ name: "local", endpoint: daemon.url }],
      apiToken: "operator-key",
      defaultTimeoutMs: 300_000,
      sessionStorePath: null,
      defaultTenantId: null,
      auditLogPath: null,
      ...settings(directory),
    };
    const tools = await AnvilTools.open(config, SILENT);
    const [clientSide, serverSide] = InMemoryTransport.createLinkedPair();
    const client = new Client({ name: "contract", version: "1" });
    await Promise.all([createMcpServer(tools, SILENT).connect(serverSide), client.connect(clientSide)]);
    await client.listTools(); // from here on the client holds every result against the tool's outputSchema
    return new Adapter(client, daemon, directory, tools);
  }

  /** The whole answer. */
  async call(name: string, args: Record<string, unknown> = {}): Promise<CallToolResult> {
    return (await this.client.callTool({ name, arguments: args })) as CallToolResult;
  }

  /** The structure of a success, which the text repeats; throws for an error. */
  async ok(name: string, args: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const result = await this.call(name, args);
    if (result.isError) throw new Error(`${name} failed: ${textOf(result)}`);
    const structure = JSON.parse(JSON.stringify(result.structuredContent)) as Record<string, unknown>;
    if (textOf(result) !== JSON.stringify(structure)) throw new Error(`${name}: text and structure differ`);
    return structure;
  }

  /** The text of an answer that must be an error, and only text. */
  async refusal(name: string, args: Record<string, unknown> = {}): Promise<string> {
    const result = await this.call(name, args);
    if (!result.isError || result.structuredContent) throw new Error(`${name} was expected to be refused`);
    return textOf(result);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.close();
    await this.#tools[Symbol.asyncDispose]();
    await this.daemon[Symbol.asyncDispose]();
    this.directory[Symbol.dispose]();
  }
}

function textOf({ content }: CallToolResult): string {
  const [block, ...more] = content;
  if (block?.type !== "text" || more.length > 0) throw new Error("not one block of text");
  return block.text;
}
