import { Places } from "./places.ts";

/** Does `work` for each item, of which `limit` are under way at once. Rejects with the first failure, and begins no more then. */
export async function atMost<T>(
  limit: number,
  items: Iterable<T>,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const places = new Places(limit);
  const failed = new AbortController();
  const inTurn = async (item: T) => {
    using _place = await places.wait(failed.signal);
    try {
      await work(item);
    } catch (error) {
      failed.abort(error);
      throw error;
    }
  };
  await Promise.all(Array.from(items, inTurn));
}
