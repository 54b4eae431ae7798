import type { Logger } from "../base/logger.ts";
import { OwnedSessions } from "../session/owned-sessions.ts";
import { LazySessions } from "./lazy-sessions.ts";
import { SessionTools } from "./session-tools.ts";
import type { ServerFacts } from "./tool.ts";
import type { ToolService } from "./tool-service.ts";

/** What a client would lose if its MCP session ended now: runs that go on, VM sessions, or nothing. */
export type Stake = "runs" | "sessions" | "nothing";

/** The tools as one client of several has them. Their disposal ends what is its alone. */
export interface ClientTools {
  tools: ToolService;
  stake(): Stake;
}

/** Where each client of a server with many gets its tools. Its disposal ends all calls of all clients. */
export interface ToolHost extends AsyncDisposable {
  forClient(): ClientTools;
}

/** The tools on sessions: each client sees its own sessions only, and all share their cap. */
export class SessionToolHost implements ToolHost {
  readonly #facts: ServerFacts;
  readonly #sessions: LazySessions;
  readonly #log: Logger;

  constructor(facts: ServerFacts, sessions: LazySessions, log: Logger) {
    this.#facts = facts;
    this.#sessions = sessions;
    this.#log = log;
  }

  forClient(): ClientTools {
    let owned: OwnedSessions | null = null;
    const own = new LazySessions(async () => {
      owned = new OwnedSessions(await this.#sessions.get());
      return owned;
    });
    return {
      tools: new SessionTools(this.#facts, own, this.#log),
      stake: () => {
        const sessions = owned?.list() ?? [];
        if (sessions.length === 0) return "nothing";
        return sessions.some(({ runs }) => runs > 0) ? "runs" : "sessions";
      },
    };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#sessions[Symbol.asyncDispose]();
  }
}

/** Tools that keep nothing for a client: all share them. */
export function sharedTools(service: ToolService): ToolHost {
  const { serverInfo, instructions, documents } = service;
  return {
    forClient: () => ({
      tools: {
        serverInfo,
        ...(instructions !== undefined && { instructions }),
        documents,
        call: (name, given, call) => service.call(name, given, call),
        [Symbol.asyncDispose]: async () => undefined,
      },
      stake: () => "nothing",
    }),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}
