import type { FileExcerpt, FileRange } from "./read-file.ts";
import type { PolledRun, PollRequest, RunRequest, RunResult } from "./run-contract.ts";
import { SessionError, unknownSession } from "./session-error.ts";
import type { CallContext, OpenedSession, SessionService, SessionSummary } from "./session-service.ts";
import type { TakenCheckpoint } from "./vm-source.ts";

/** Ids kept, those of ended sessions included; beyond this the oldest that ended is forgotten. */
const LIMIT = 1024;

/**
 * One client's part of sessions that clients share: it knows only what it opened, and all of that is closed with it.
 * The cap stays that of all clients together.
 */
export class OwnedSessions implements SessionService {
  readonly #all: SessionService;
  readonly #owned = new Set<string>();
  readonly #end = new AbortController();
  readonly #opens = new Set<Promise<unknown>>();

  constructor(all: SessionService) {
    this.#all = all;
  }

  open(call: CallContext): Promise<OpenedSession> {
    return this.#own(call, (bound) => this.#all.open(bound));
  }

  fork(checkpointId: string, call: CallContext): Promise<OpenedSession> {
    return this.#own(call, (bound) => this.#all.fork(checkpointId, bound));
  }

  async run(sessionId: string, request: RunRequest, call: CallContext): Promise<RunResult | PolledRun> {
    return await this.#of(sessionId).run(sessionId, request, call);
  }

  async awaitRun(sessionId: string, runId: string, call: CallContext): Promise<RunResult | PolledRun> {
    return await this.#of(sessionId).awaitRun(sessionId, runId, call);
  }

  async poll(sessionId: string, runId: string, request: PollRequest, call: CallContext): Promise<PolledRun> {
    return await this.#of(sessionId).poll(sessionId, runId, request, call);
  }

  async writeFile(sessionId: string, path: string, content: Uint8Array, call: CallContext): Promise<void> {
    await this.#of(sessionId).writeFile(sessionId, path, content, call);
  }

  async readFile(sessionId: string, path: string, range: FileRange, call: CallContext): Promise<FileExcerpt> {
    return await this.#of(sessionId).readFile(sessionId, path, range, call);
  }

  async reset(sessionId: string, call: CallContext): Promise<void> {
    await this.#of(sessionId).reset(sessionId, call);
  }

  async checkpoint(sessionId: string, call: CallContext): Promise<TakenCheckpoint> {
    return await this.#of(sessionId).checkpoint(sessionId, call);
  }

  async close(sessionId: string): Promise<void> {
    await this.#of(sessionId).close(sessionId);
  }

  list(): SessionSummary[] {
    return this.#all.list().filter(({ sessionId }) => this.#owned.has(sessionId));
  }

  /** Closes all it opened; an open under way is given up. What the sessions are shared from goes on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await Promise.allSettled(this.#opens);
    // One that cannot be closed has ended already, or is being closed by a call.
    await Promise.allSettled(this.list().map(({ sessionId }) => this.#all.close(sessionId)));
  }

  #of(sessionId: string): SessionService {
    if (this.#owned.has(sessionId)) return this.#all;
    throw unknownSession(sessionId);
  }

  async #own(
    call: CallContext,
    open: (bound: CallContext) => Promise<OpenedSession>,
  ): Promise<OpenedSession> {
    if (this.#end.signal.aborted)
      throw new SessionError("cancelled", "the client's MCP session has ended. Start a new one to go on.");
    const opening = open({ ...call, signal: AbortSignal.any([call.signal, this.#end.signal]) });
    const recorded = opening.then(({ sessionId }) => this.#record(sessionId));
    this.#opens.add(recorded);
    try {
      await recorded;
      return await opening;
    } finally {
      this.#opens.delete(recorded);
    }
  }

  #record(sessionId: string): void {
    this.#owned.add(sessionId);
    if (this.#owned.size <= LIMIT) return;
    const live = new Set(this.#all.list().map((session) => session.sessionId));
    const ended = [...this.#owned].find((id) => !live.has(id));
    if (ended !== undefined) this.#owned.delete(ended);
  }
}
