/** Whether an answer's end may be far off, so that it is not held in memory to be counted, and no idle time ends it. */
export function isStreamed(headers: Headers): boolean {
  return /^(?:text\/event-stream|application\/x-ndjson|application\/vnd\.anvil)/.test(
    headers.get("content-type") ?? "",
  );
}
