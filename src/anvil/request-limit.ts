const MARGIN_MS = 30_000;
const TASK_MS = 24 * 3_600_000;
const FLOCK_MS = 3_600_000;
const CHANGE_MS = 600_000;
const LOOK_MS = 120_000;

/** Time after which a daemon that has not answered hangs, in `ms`: the longest of its own deadlines, and some more. */
export function requestLimitMs(method: string, path: string): number {
  return longestMs(method, path) + MARGIN_MS;
}

function longestMs(method: string, path: string): number {
  if (/\/(?:tasks|broadcast)$/.test(path)) return TASK_MS;
  if (method === "GET" || method === "PUT") return LOOK_MS;
  return method === "POST" && path === "/flocks" ? FLOCK_MS : CHANGE_MS;
}
