import type { LogFields, Logger } from "../base/logger.ts";
import { describeDeath } from "../vm/vm-death.ts";
import { checkpointSession, forkFailure } from "./checkpoints.ts";
import { claimReason, openFailure, resetFailure } from "./claim-failure.ts";
import { explainRefusal } from "./guest-refusal.ts";
import { IdleReaper } from "./idle-reaper.ts";
import { type FileExcerpt, type FileRange, readFile } from "./read-file.ts";
import type { PolledRun, PollRequest, RunRequest, RunResult } from "./run-contract.ts";
import { diedUnderCall, Session } from "./session.ts";
import { busy, cancelled, SessionError, shuttingDown, unknownSession } from "./session-error.ts";
import { newSessionId } from "./session-id.ts";
import { evidenceIn, evidenceOf, SessionLog } from "./session-log.ts";
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
  readonly #events: SessionLog;
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
    this.#events = new SessionLog(log);
    this.#reaper = new IdleReaper(
      idleMs,
      () => this.#sessions.values(),
      (session, reason) => {
        session.become("closing");
        void this.#end(session, reason);
      },
    );
  }

  async open(call: CallContext): Promise<OpenedSession> {
    return await this.#openOn(() => this.#source.claim(call), call, openFailure);
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
      throw this.#unopened(session, error, call, explain);
    }
    session.install(vm);
    if (call.signal.aborted || !session.become("ready")) {
      // Nobody would learn its id.
      session.become("closing");
      await this.#end(session, "its open was cancelled");
      throw this.#closing ? shuttingDown() : cancelled();
    }
    this.#watch(session, vm);
    this.#events.note(session, "opened");
    this.#reaper.start();
    return { sessionId: session.id };
  }

  /** The log says what the caller is told. */
  #unopened(
    session: Session,
    error: unknown,
    call: CallContext,
    explain: (error: unknown) => SessionError,
  ): SessionError {
    if (!call.signal.aborted && !this.#closing) {
      const told = explain(error);
      this.#events.warn(session, "open_failed", told.message, evidenceIn(error));
      return told;
    }
    const told = call.signal.aborted ? cancelled(error) : shuttingDown();
    this.#events.note(session, "open_failed", told.message);
    return told;
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
    if (!session.become("resetting")) throw busy(session.id, session.state);
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
        this.#events.note(session, "reset");
      } else {
        await this.#dispose(session.surrender(diedUnderCall(sessionId, "it was closed")));
        throw this.#unfound(sessionId);
      }
    } catch (error) {
      if (session.become("dead"))
        await this.#end(session, `its reset failed: ${claimReason(error)}`, evidenceIn(error));
      throw this.#closing && !(error instanceof SessionError)
        ? shuttingDown()
        : resetFailure(sessionId, error);
    } finally {
      await disposed;
    }
  }

  async close(sessionId: string): Promise<void> {
    const session = this.#find(sessionId);
    if (!session.become("closing")) throw busy(session.id, session.state);
    await this.#end(session, "it was closed");
  }

  /** Without those that are still being opened: nobody knows their ids, and no call takes them. */
  list(): SessionSummary[] {
    const now = performance.now();
    return [...this.#sessions.values()]
      .filter((session) => session.state !== "opening")
      .map((session) => session.summary(now, this.#idleMs));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing = true;
    this.#reaper.stop();
    for (const session of this.#sessions.values()) {
      session.become("closing");
      void this.#end(session, "the server shut down");
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
    const id = newSessionId();
    const session = new Session(id, this.#callMs, (from, to) => this.#events.state(id, from, to));
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
      void this.#end(session, describeDeath(death), evidenceOf(session, vm.traces()));
    });
  }

  /**
   * The session is out of the table before its machine is gone, and its id answers with the cause. `evidence` is of an
   * end that nobody asked for.
   */
  async #end(session: Session, cause: string, evidence: LogFields | null = null): Promise<void> {
    this.#tombstones.bury(session.id, cause);
    this.#forget(session);
    if (evidence) this.#events.warn(session, "ended", cause, evidence);
    else this.#events.note(session, "ended", cause);
    await this.#dispose(session.surrender(diedUnderCall(session.id, cause)));
    session.become("closed");
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
}
