const LIMIT_MS = 20_000;

/** Waits until the condition holds; throws naming it when it never does. */
export async function eventually(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + LIMIT_MS;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`still waiting after ${LIMIT_MS} ms for ${what}`);
    await Bun.sleep(2);
  }
}
