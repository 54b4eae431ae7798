/** Measured durations of one thing, in `ms`. */
export class Series {
  readonly name: string;
  readonly #values: number[] = [];

  constructor(name: string) {
    this.name = name;
  }

  add(valueMs: number): void {
    this.#values.push(valueMs);
  }

  async time<T>(work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const result = await work();
    this.add(performance.now() - startedAt);
    return result;
  }

  /** Nearest-rank percentile; NaN without values */
  percentile(percent: number): number {
    const sorted = this.#values.toSorted((a, b) => a - b);
    return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN;
  }

  get count(): number {
    return this.#values.length;
  }

  row(): string[] {
    return [this.name, this.percentile(50).toFixed(1), this.percentile(99).toFixed(1), String(this.count)];
  }
}

export function printTable(head: string[], rows: string[][]): void {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  for (const row of all) {
    console.log(
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
        .join("  "),
    );
  }
}
