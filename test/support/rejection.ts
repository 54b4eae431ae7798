/** The error a promise rejects with; throws when it resolves. */
export async function rejection<E extends Error>(promise: Promise<unknown>): Promise<E> {
  try {
    await promise;
  } catch (error) {
    return error as E;
  }
  throw new Error("the promise was expected to reject, and resolved");
}
