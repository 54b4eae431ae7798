/** Causes kept; beyond this the oldest is forgotten and its id is unknown again. */
const LIMIT = 1024;
/** Beyond this a cause is cut: it may quote what a program said. */
const MAX_CAUSE_CHARACTERS = 1000;

/** Why sessions ended, so that an error can say it. The first cause of an id stands. */
export class Tombstones {
  readonly #causes = new Map<string, string>();

  bury(sessionId: string, cause: string): void {
    if (this.#causes.has(sessionId)) return;
    const isLong = cause.length > MAX_CAUSE_CHARACTERS;
    this.#causes.set(sessionId, isLong ? `${cause.slice(0, MAX_CAUSE_CHARACTERS)}…` : cause);
    if (this.#causes.size > LIMIT) this.#causes.delete(this.#causes.keys().next().value as string);
  }

  /** Completes "session … has ended: …"; null for an id that never was, or was forgotten. */
  causeOf(sessionId: string): string | null {
    return this.#causes.get(sessionId) ?? null;
  }
}
