/** The life of a session. A closed or dead one holds no slot and no VM. */
export type SessionState = "opening" | "ready" | "resetting" | "closing" | "closed" | "dead";

const NEXT: Record<SessionState, readonly SessionState[]> = {
  opening: ["ready", "closing", "dead"],
  ready: ["resetting", "closing", "dead"],
  resetting: ["ready", "closing", "dead"],
  closing: ["closed"],
  closed: [],
  dead: [],
};

export function canBecome(from: SessionState, to: SessionState): boolean {
  return NEXT[from].includes(to);
}
