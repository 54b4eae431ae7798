import { within } from "../base/wait.ts";
import { AgentError } from "../guest/agent-error.ts";
import { describeDeath } from "../vm/vm-death.ts";
import { busy, SessionError } from "./session-error.ts";
import { SessionRuns } from "./session-runs.ts";
import type { SessionSummary } from "./session-service.ts";
import { canBecome, type SessionState } from "./session-state.ts";
import type { SessionVm } from "./vm-source.ts";

/** A lost agent is explained by its VM's death, which on a busy machine is known much later. */
const DEATH_CAUSE_MS = 30_000;

/** One client's hold on one machine: its state, its calls in flight, and why it ended. */
export class Session {
  readonly id: string;
  readonly runs: SessionRuns;
  readonly #openedAt = performance.now();
  readonly #onState: (from: SessionState, to: SessionState) => void;
  #state: SessionState = "opening";
  #vm: SessionVm | null = null;
  #calls = 0;
  #usedAt = performance.now();
  /** Aborts the calls in flight when the machine under them is taken away */
  #tenure = new AbortController();

  /** `callMs` as in `SessionRuns` */
  constructor(id: string, callMs: number, onState: (from: SessionState, to: SessionState) => void) {
    this.id = id;
    this.runs = new SessionRuns(this, callMs);
    this.#onState = onState;
  }

  get state(): SessionState {
    return this.#state;
  }

  /** Time since the last call ended, in `ms`; 0 while one is in flight */
  idleMs(now: number): number {
    return this.#calls > 0 || this.#state !== "ready" ? 0 : now - this.#usedAt;
  }

  /** `idleLimitMs` is the idle time after which it is closed. */
  summary(now: number, idleLimitMs: number): SessionSummary {
    const idleMs = this.idleMs(now);
    return {
      sessionId: this.id,
      state: this.#state,
      ageMs: now - this.#openedAt,
      idleMs,
      runs: this.runs.underWay,
      closesInMs: this.#calls > 0 || this.#state !== "ready" ? null : Math.max(0, idleLimitMs - idleMs),
    };
  }

  /** The only writer of the state. False when the session has moved on meanwhile. */
  become(next: SessionState): boolean {
    const from = this.#state;
    if (!canBecome(from, next)) return false;
    this.#state = next;
    this.#onState(from, next);
    return true;
  }

  install(vm: SessionVm): void {
    this.#vm = vm;
    this.#tenure = new AbortController();
    this.#usedAt = performance.now();
  }

  holds(vm: SessionVm): boolean {
    return this.#vm === vm;
  }

  /** Ends the calls in flight with `reason` and gives the machine back to the caller, to be disposed of. */
  surrender(reason: SessionError): SessionVm | null {
    const vm = this.#vm;
    this.#vm = null;
    this.#tenure.abort(reason);
    return vm;
  }

  /** Runs one call on the machine. While it lasts the session is busy; its errors say what became of the session. */
  async use<T>(signal: AbortSignal, work: (vm: SessionVm, signal: AbortSignal) => Promise<T>): Promise<T> {
    const vm = this.#usable();
    const tenure = this.#tenure.signal;
    this.#calls++;
    try {
      return await untilAborted(tenure, work(vm, signal));
    } catch (error) {
      throw await this.#explain(error, vm, tenure, signal);
    } finally {
      this.#calls--;
      this.#usedAt = performance.now();
    }
  }

  #usable(): SessionVm {
    if (this.#state === "ready" && this.#vm) return this.#vm;
    throw busy(this.id, this.#state);
  }

  async #explain(error: unknown, vm: SessionVm, tenure: AbortSignal, signal: AbortSignal): Promise<unknown> {
    if (tenure.aborted) return tenure.reason;
    if (signal.aborted)
      return new SessionError("cancelled", `the call in session ${this.id} was cancelled`, error);
    if (!(error instanceof AgentError) || error.code === "agent_refused") return error;
    const death = await within(vm.died, DEATH_CAUSE_MS, "the VM's end").catch(() => null);
    if (tenure.aborted && tenure.reason instanceof SessionError) return tenure.reason;
    const cause = death ? describeDeath(death) : "the agent in its guest did not answer";
    return diedUnderCall(this.id, cause, error);
  }
}

export function diedUnderCall(sessionId: string, cause: string, error?: unknown): SessionError {
  return new SessionError(
    "session_died",
    `session ${sessionId} ended during this call: ${cause}. Open a new one with open_session.`,
    error,
  );
}

/** Settles with `work`, or rejects as soon as the signal aborts. */
async function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  aborted.catch(() => undefined);
  work.catch(() => undefined);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
