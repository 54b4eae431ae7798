import type { WallMessage } from "./wall-message.ts";

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;

/** Which messages are asked for; what is left out does not matter. */
export interface WallFilter {
  agentId?: string | undefined;
  /** In `ms` since 1970, the instant itself included, as in `until` */
  since?: number | undefined;
  until?: number | undefined;
  contains?: string | undefined;
}

export function isWanted(message: WallMessage, { agentId, since, until, contains }: WallFilter): boolean {
  if (agentId !== undefined && message.agent_id !== agentId) return false;
  if (contains !== undefined && !message.body.includes(contains)) return false;
  if (since === undefined && until === undefined) return true;
  const time = Date.parse(message.timestamp);
  return !(time < (since ?? Number.NEGATIVE_INFINITY)) && !(time > (until ?? Number.POSITIVE_INFINITY));
}

/** `ms` since 1970, NaN for what is no RFC 3339 time. */
export function parseTime(text: string): number {
  return RFC3339.test(text) ? Date.parse(text) : Number.NaN;
}
