import type { WallMessage } from "./wall-message.ts";

/** A time of RFC 3339 */
export const TIME_PATTERN =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(T|t)([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|z|(\+|-)([01]\d|2[0-3]):[0-5]\d)$/;

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
