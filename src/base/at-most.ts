/** Does `work` for each item, of which `limit` are under way at once. Rejects with the first failure, and begins no more then. */
export async function atMost<T>(
  limit: number,
  items: Iterable<T>,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items[Symbol.iterator]();
  let hasFailed = false;
  const lane = async () => {
    for (let next = queue.next(); !next.done && !hasFailed; next = queue.next()) {
      try {
        await work(next.value);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: limit }, lane));
}
