const STILL_MS = 500;

/** Resolves when something has happened, and then the number has been the same for a while. */
export async function untilStill(count: () => number): Promise<void> {
  for (let before = 0; count() === 0 || before !== count(); await Bun.sleep(STILL_MS)) before = count();
}
