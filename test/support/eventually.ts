/** Far more than any wait takes: a limit costs nothing where the condition comes, and machines are busy. */
const LIMIT_MS = 60_000;

/** Waits until the condition holds; throws naming it when it never does. */
export async function eventually(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + LIMIT_MS;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`still waiting after ${LIMIT_MS} ms for ${what}`);
    await Bun.sleep(2);
  }
}
