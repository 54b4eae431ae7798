import { Series } from "./series.ts";

/** Durations of many kinds of operation. */
export class OperationTimes {
  readonly #series = new Map<string, Series>();

  /** Only what succeeds counts. */
  async time<T>(name: string, work: () => Promise<T>): Promise<T> {
    const series = this.#series.get(name) ?? new Series(name);
    this.#series.set(name, series);
    return await series.time(work);
  }

  get all(): Series[] {
    return [...this.#series.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }
}
