import type { LogFields, Logger } from "../base/logger.ts";
import { describeDeath } from "../vm/vm-death.ts";
import { checkpointSession, forkFailure } from "./checkpoints.ts";
import { explainRefusal } from "./guest-refusal.ts";
import { IdleReaper } from "./idle-reaper.ts";
import { type FileExcerpt, type FileRange, readFile } from "./read-file.ts";
import type { PolledRun, PollRequest, RunRequest, RunResult } from "./run-contract.ts";
import { diedUnderCall, Session } from "./session.ts";
import { SessionError, unknownSession } from "./session-error.ts";
import { newSessionId, shortSessionId } from "./session-id.ts";
import type { CallContext, OpenedSession, SessionService, SessionSummary } from "./session-service.ts";
import { Tombstones } from "./tombstones.ts";
import type { SessionVm, TakenCheckpoint, VmSource } from "./vm-source.ts";

export interface SessionTableOptions {
  source: VmSource;
  maxSessions: number;
  /** Unused time after which a session is closed, in `ms` */
  idleMs: number;
  /** Time after which a call without progress is answered though its run goes on, in `ms`; 0 for never */
  callMs: number;
  log: Logger;
}

/** All sessions of one server. */
export class SessionTable implements SessionService {
  readonly #source: VmSource;
  readonly #maxSessions: number;
  readonly #idleMs: number;
  readonly #callMs: number;
  readonly #log: Logger;
  readonly #sessions = new Map<string, Session>();
  readonly #tombstones = new Tombstones();
  readonly #reaper: IdleReaper;
  readonly #disposals = new Set<Promise<void>>();
  /** Opens and resets under way; shutdown waits for what they claimed */
  readonly #claims = new Set<Promise<SessionVm>>();
  #closing = false;

  constructor({ source, maxSessions, idleMs, callMs, log }: SessionTableOptions) {
    this.#source = source;
    this.#maxSessions = maxSessions;
    this.#idleMs = idleMs;
    this.#callMs = callMs;
    this.#log = log;
    this.#reaper = new IdleReaper(
      idleMs,
      () => this.#sessions.values(),
      (session, reason) => {
        session.become("closing");
        void this.#end(session, "closed", reason);
      },
    );
  }

  async open(call: CallContext): Promise<OpenedSession> {
    return await this.#openOn(
      () => this.#source.claim(call),
      call,
      (error) => this.#claimFailure("open_failed", "no session could be opened", error),
    );
  }

  async fork(checkpointId: string, call: CallContext): Promise<OpenedSession> {
    return await this.#openOn(() => this.#source.fork(checkpointId, call), call, forkFailure);
  }

  async checkpoint(sessionId: string, call: CallContext): Promise<TakenCheckpoint> {
    return await checkpointSession(this.#find(sessionId), call);
  }

  /** Opens a session on the machine that `claim` gets. */
  async #openOn(
    claim: () => Promise<SessionVm>,
    call: CallContext,
    explain: (error: unknown) => SessionError,
  ): Promise<OpenedSession> {
    this.#admit();
    const session = this.#register();
    let vm: SessionVm;
    try {
      vm = await this.#claim(claim);
    } catch (error) {
      this.#forget(session);
      this.#note(session, "open_failed", { cause: (error as Error).message });
      if (call.signal.aborted) throw cancelled(error);
      throw this.#closing ? shuttingDown() : explain(error);
    }
    session.install(vm);
    if (call.signal.aborted || !session.become("ready")) {
      // Nobody would learn its id.
      session.become("closing");
      await this.#end(session, "closed", "its open was cancelled");
      throw this.#closing ? shuttingDown() : cancelled();
    }
    this.#watch(session, vm);
    this.#note(session, "opened");
    this.#reaper.start();
    return { sessionId: session.id };
  }

  async run(sessionId: string, request: RunRequest, call: CallContext): Promise<RunResult | PolledRun> {
    return await this.#find(sessionId).runs.run(request, call);
  }

  async awaitRun(sessionId: string, runId: string, call: CallContext): Promise<RunResult | PolledRun> {
    return await this.#find(sessionId).runs.awaitRun(runId, call);
  }

  async poll(sessionId: string, runId: string, request: PollRequest, call: CallContext): Promise<PolledRun> {
    return await this.#find(sessionId).runs.poll(runId, request, call);
  }

  async writeFile(sessionId: string, path: string, content: Uint8Array, call: CallContext): Promise<void> {
    try {
      await this.#find(sessionId).use(call.signal, (vm, signal) => vm.putFile(path, content, signal));
    } catch (error) {
      throw explainRefusal(error, path, "write_failed");
    }
  }

  async readFile(sessionId: string, path: string, range: FileRange, call: CallContext): Promise<FileExcerpt> {
    try {
      return await this.#find(sessionId).use(call.signal, (vm, signal) => readFile(vm, path, range, signal));
    } catch (error) {
      throw explainRefusal(error, path, "read_failed");
    }
  }

  /** Goes through even when the caller gives up: a session is never left between two machines. */
  async reset(sessionId: string, call: CallContext): Promise<void> {
    const session = this.#find(sessionId);
    if (call.signal.aborted) throw cancelled();
    if (!session.become("resetting")) throw busy(session);
    const reason = new SessionError(
      "session_died",
      `session ${sessionId} was reset during this call, and its files are gone. Run the command again.`,
    );
    session.runs.loseAll("its session was reset");
    const disposed = this.#dispose(session.surrender(reason));
    try {
      const lasting = { ...call, signal: new AbortController().signal };
      const vm = await this.#claim(() => this.#source.claim(lasting));
      session.install(vm);
      if (session.become("ready")) {
        this.#watch(session, vm);
        this.#note(session, "reset");
      } else {
        await this.#dispose(session.surrender(diedUnderCall(sessionId, "it was closed")));
        throw this.#unfound(sessionId);
      }
    } catch (error) {
      if (session.become("dead")) await this.#end(session, "dead", "its reset failed");
      throw this.#claimFailure(
        "reset_failed",
        `session ${sessionId} could not be reset and is closed`,
        error,
      );
    } finally {
      await disposed;
    }
  }

  async close(sessionId: string): Promise<void> {
    const session = this.#find(sessionId);
    if (!session.become("closing")) throw busy(session);
    await this.#end(session, "closed", "it was closed");
  }

  list(): SessionSummary[] {
    const now = performance.now();
    return [...this.#sessions.values()].map((session) => session.summary(now, this.#idleMs));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing = true;
    this.#reaper.stop();
    for (const session of this.#sessions.values()) {
      session.become("closing");
      void this.#end(session, "closed", "the server shut down");
    }
    await Promise.all([this.#source[Symbol.asyncDispose](), Promise.allSettled(this.#claims)]);
    await Promise.all(this.#disposals);
  }

  #claim(start: () => Promise<SessionVm>): Promise<SessionVm> {
    const claim = start().finally(() => this.#claims.delete(claim));
    this.#claims.add(claim);
    return claim;
  }

  #admit(): void {
    if (this.#closing) throw shuttingDown();
    if (this.#sessions.size < this.#maxSessions) return;
    throw new SessionError(
      "session_cap",
      `all ${this.#maxSessions} sessions are in use. Close one with close, or raise IGN_MCP_MAX_SESSIONS.`,
    );
  }

  #register(): Session {
    const session = new Session(newSessionId(), this.#callMs, (from, to) =>
      this.#log.debug({ session: shortSessionId(session.id), from, to }, "session state"),
    );
    this.#sessions.set(session.id, session);
    return session;
  }

  #find(sessionId: string): Session {
    const session = this.#sessions.get(sessionId);
    if (session && session.state !== "opening") return session;
    throw this.#unfound(sessionId);
  }

  /** Why an id leads to no session. */
  #unfound(sessionId: string): SessionError {
    const cause = this.#tombstones.causeOf(sessionId);
    if (cause === null) return unknownSession(sessionId);
    return new SessionError(
      "dead_session",
      `session ${sessionId} has ended: ${cause}. Open a new one with open_session.`,
    );
  }

  /** Frees the slot the moment the machine dies. */
  #watch(session: Session, vm: SessionVm): void {
    void vm.died.then((death) => {
      if (!session.holds(vm) || !session.become("dead")) return;
      void this.#end(session, "dead", describeDeath(death));
    });
  }

  /** The session is out of the table before its machine is gone, and its id answers with the cause. */
  async #end(session: Session, state: "closed" | "dead", cause: string): Promise<void> {
    this.#tombstones.bury(session.id, cause);
    this.#forget(session);
    this.#note(session, "ended", { cause });
    await this.#dispose(session.surrender(diedUnderCall(session.id, cause)));
    if (state === "closed") session.become("closed");
  }

  /** One line per event of a session's life. Ids are keys, so logs have only their start. */
  #note(session: Session, event: "opened" | "open_failed" | "reset" | "ended", detail: LogFields = {}): void {
    this.#log.info({ event, session: shortSessionId(session.id), ...detail }, `session ${event}`);
  }

  #forget(session: Session): void {
    this.#sessions.delete(session.id);
  }

  #dispose(vm: SessionVm | null): Promise<void> {
    if (!vm) return Promise.resolve();
    const disposal = Promise.resolve(vm[Symbol.asyncDispose]())
      .catch((err: unknown) => this.#log.error({ err }, "a VM could not be ended"))
      .finally(() => this.#disposals.delete(disposal));
    this.#disposals.add(disposal);
    return disposal;
  }

  #claimFailure(code: "open_failed" | "reset_failed", what: string, error: unknown): SessionError {
    if (error instanceof SessionError) return error;
    if (this.#closing) return shuttingDown();
    return new SessionError(
      code,
      `${what}: ${error instanceof Error ? error.message : String(error)}`,
      error,
    );
  }
}

function busy(session: Session): SessionError {
  return new SessionError(
    "session_busy",
    `session ${session.id} is ${session.state}. Wait for that call to end, then try again.`,
  );
}

function shuttingDown(): SessionError {
  return new SessionError("shutting_down", "the server is shutting down. Start it again to go on.");
}

function cancelled(error?: unknown): SessionError {
  return new SessionError("cancelled", "the call was cancelled. Call again to go on.", error);
}
