/** Causes kept; beyond this the oldest is forgotten and its id is unknown again. */
const LIMIT = 1024;

/** Why sessions ended, so that an error can say it. The first cause of an id stands. */
export class Tombstones {
  readonly #causes = new Map<string, string>();

  bury(sessionId: string, cause: string): void {
    if (this.#causes.has(sessionId)) return;
    this.#causes.set(sessionId, cause);
    if (this.#causes.size > LIMIT) this.#causes.delete(this.#causes.keys().next().value as string);
  }

  /** Completes "session … has ended: …"; null for an id that never was, or was forgotten. */
  causeOf(sessionId: string): string | null {
    return this.#causes.get(sessionId) ?? null;
  }
}
