/** Lets one piece of asynchronous work at a time in, in the order it came. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => T | Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined); // told to whoever asked for the work
    return result;
  }
}
