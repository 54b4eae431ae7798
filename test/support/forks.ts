import { readdirSync } from "node:fs";
import { join } from "node:path";
import { removeBase } from "../../src/vm/base-store.ts";
import { TestHome } from "./real-vm.ts";
import { TestServer, TestSession } from "./test-server.ts";
import { TestStore } from "./test-store.ts";

export interface Checkpoint {
  checkpoint_id: string;
  bytes_written: number;
  paused_ms: number;
}

/** A store of its own with the shared base in it, and servers over it, for tests that make checkpoints. */
export class ForkingHome implements AsyncDisposable {
  readonly home = new TestHome();
  readonly store = new TestStore(join(this.home.path, "store"));
  readonly #servers: TestServer[] = [];

  constructor() {
    this.store.copySharedBase();
  }

  async start(extraEnv: Record<string, string> = {}): Promise<TestServer> {
    const env = {
      IGN_MCP_STORE: this.store.path,
      IGN_MCP_POOL: "0",
      IGN_MCP_TOOLS: "all",
      IGN_MCP_MAX_SESSIONS: "12",
      ...extraEnv,
    };
    const server = await TestServer.start(env);
    this.#servers.push(server);
    return server;
  }

  removeCheckpoint(id: string): Promise<void> {
    return removeBase({ storePath: this.store.path }, id);
  }

  /** Everything in the store's directory of bases, drafts included, but for the lock while one is begun */
  snapshots(): string[] {
    const names = readdirSync(join(this.store.path, "snapshots"));
    return names.filter((name) => !name.startsWith(".checkpoints.lock")).sort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      for (const server of this.#servers) await server[Symbol.asyncDispose]();
    } finally {
      this.home[Symbol.dispose]();
    }
  }
}

export async function checkpoint(server: TestServer, session: TestSession): Promise<Checkpoint> {
  const { fields } = await server.client.callOk("checkpoint", { session_id: session.id });
  return fields as unknown as Checkpoint;
}

export async function fork(server: TestServer, checkpointId: string): Promise<TestSession> {
  const { fields } = await server.client.callOk("fork", { checkpoint_id: checkpointId });
  return new TestSession(server.client, String(fields["session_id"]));
}

/** The message of a fork that must be an error. */
export async function forkRefusal(server: TestServer, checkpointId: string): Promise<string> {
  const { isError, text } = await server.client.call("fork", { checkpoint_id: checkpointId });
  if (!isError) throw new Error(`fork was expected to fail, and answered ${text}`);
  return text;
}

/** Starts a process in the background that counts up in this file, some twenty steps a second. */
export async function startCounter(session: TestSession, path: string): Promise<void> {
  await session.output(
    `(i=0; while :; do i=$((i+1)); echo $i >${path}.new; mv ${path}.new ${path}; sleep 0.05; done) >/dev/null 2>&1 &`,
  );
}

export async function countOf(session: TestSession, path: string): Promise<number> {
  return Number(await session.output(`cat ${path}`));
}
