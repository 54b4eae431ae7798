import type { Logger } from "../base/logger.ts";
import type { Principal } from "./http-gate.ts";
import { HttpSession } from "./http-session.ts";
import type { ToolHost } from "./tool-host.ts";

const LONGEST_ROUND_MS = 30_000;
/** A session unused this long that holds nothing makes room for a new one, in `ms` */
const SPARE_MS = 60_000;
/** Enough to tell sessions apart in a log, too little to use one */
const SHORT_CHARACTERS = 10;

export interface HttpSessionsOptions {
  host: ToolHost;
  maxClients: number;
  /** Unused time after which a session ends, in `ms` */
  idleMs: number;
  /** Whether a principal would be let in now */
  isCurrent: (principal: Principal) => boolean;
  log: Logger;
}

/** The MCP sessions of all clients, each bound to the principal that began it. */
export class HttpSessions {
  readonly #options: HttpSessionsOptions;
  readonly #sessions = new Map<string, HttpSession>();
  readonly #timer: Timer;
  #beginning = 0;

  constructor(options: HttpSessionsOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.endStale(), Math.min(LONGEST_ROUND_MS, options.idleMs / 4));
    this.#timer.unref();
  }

  /** Null when there is none of this principal; whether there is one of another cannot be told. */
  find(id: string, principal: Principal): HttpSession | null {
    const session = this.#sessions.get(id);
    return session !== undefined && session.principal === principal ? session : null;
  }

  /** Begins a session with the request that initializes it, and is there once that succeeded. Null at the cap. */
  async begin(
    principal: Principal,
    initialize: (session: HttpSession) => Promise<Response>,
  ): Promise<Response | null> {
    const { host, log } = this.#options;
    if (!this.#hasRoom()) return null;
    this.#beginning += 1;
    try {
      const session = await HttpSession.open(principal, host.forClient(), log);
      const response = await initialize(session);
      if (session.id === undefined) await session.end();
      else this.#add(session.id, session);
      return response;
    } finally {
      this.#beginning -= 1;
    }
  }

  /** Ends a session, which is out of reach before what it holds has ended. */
  async end(id: string, reason: string): Promise<void> {
    const session = this.#sessions.get(id);
    if (session === undefined) return;
    this.#sessions.delete(id);
    this.#note(id, session, `ended: ${reason}`);
    await session.end();
  }

  /** Ends sessions nobody uses, and those of clients whose token is no longer good. */
  endStale(now = performance.now()): void {
    const { idleMs, isCurrent } = this.#options;
    for (const [id, session] of this.#sessions) {
      if (!isCurrent(session.principal)) void this.end(id, "its token is no longer good");
      else if (session.idleMs(now) > idleMs && session.stake !== "runs") void this.end(id, "nobody used it");
    }
  }

  /** Ends all and resolves when every stream has ended. */
  async endAll(): Promise<void> {
    clearInterval(this.#timer);
    const all = [...this.#sessions];
    await Promise.all(
      all.map(async ([id, session]) => {
        await this.end(id, "the server shut down");
        await session.drained();
      }),
    );
  }

  #add(id: string, session: HttpSession): void {
    this.#sessions.set(id, session);
    this.#note(id, session, "began");
  }

  #hasRoom(): boolean {
    const { maxClients } = this.#options;
    if (this.#sessions.size + this.#beginning < maxClients) return true;
    const now = performance.now();
    const [spare] = [...this.#sessions]
      .filter(([, session]) => session.stake === "nothing" && session.idleMs(now) > SPARE_MS)
      .sort(([, one], [, other]) => other.idleMs(now) - one.idleMs(now));
    if (spare === undefined) return false;
    void this.end(spare[0], "it made room for another");
    return true;
  }

  #note(id: string, { principal }: HttpSession, event: string): void {
    const fields = { mcpSession: id.slice(0, SHORT_CHARACTERS), ...(principal !== null && { principal }) };
    this.#options.log.info(fields, `MCP session ${event}`);
  }
}
