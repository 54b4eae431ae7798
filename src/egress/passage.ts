import type { Channel } from "./channel.ts";
import type { Grounds } from "./decide.ts";
import { type Destination, textOf } from "./destination.ts";
import { EgressError, type RefusalReason } from "./egress-error.ts";
import type { EgressGate } from "./egress-gate.ts";

/** How what was allowed may end early */
const ENDS: ReadonlySet<RefusalReason> = new Set(["ended", "idle_timeout", "connection_lost"]);

/** One destination of one connection, from the request to the end: what is counted and logged. */
export class Passage {
  readonly #gate: EgressGate;
  readonly #client: Channel;
  readonly #startedAt = performance.now();
  readonly #readBefore: number;
  readonly #writtenBefore: number;
  #destination: string | null = null;
  #grounds: Grounds | "internal" | null = null;
  #isOver = false;

  constructor(gate: EgressGate, client: Channel) {
    this.#gate = gate;
    this.#client = client;
    this.#readBefore = client.readBytes;
    this.#writtenBefore = client.writtenBytes;
  }

  goesTo(destination: Destination): void {
    this.#destination = textOf(destination);
  }

  allow(grounds: Grounds | "internal"): void {
    this.#grounds = grounds;
  }

  /** Counts it and writes its line, once. Without an error it ended as both sides wanted. */
  end(error?: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // A connection that asked for nothing.
    if (error === undefined && this.#destination === null) return;
    const { counters, log, logFields, onVerdict } = this.#gate;
    const fromGuest = this.#client.readBytes - this.#readBefore;
    const toGuest = this.#client.writtenBytes - this.#writtenBefore;
    const refusal = this.#refusalIn(error);
    if (refusal) counters.countRefused(refusal);
    else counters.allowed++;
    const verdict = refusal ? "refused" : "allowed";
    const reason = refusal ?? this.#grounds;
    // Without grounds it was left before anything was decided.
    if (reason !== null) onVerdict(verdict, reason);
    const fields = {
      ...logFields,
      destination: this.#destination,
      verdict,
      reason,
      ...(error instanceof Error && { ended: error.message }),
      bytes_from_guest: fromGuest,
      bytes_to_guest: toGuest,
      ms: Math.round(performance.now() - this.#startedAt),
    };
    if (refusal === "internal_error") log.error({ ...fields, err: error }, "egress failed");
    else log.info(fields, "egress");
  }

  /** What breaks after it was allowed ends it, and is no refusal, unless it is one by its nature. */
  #refusalIn(error: unknown): RefusalReason | null {
    if (error === undefined) return null;
    const code = error instanceof EgressError ? (error.code as RefusalReason) : "internal_error";
    return this.#grounds !== null && ENDS.has(code) ? null : code;
  }
}
