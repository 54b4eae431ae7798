const MOST_CHARACTERS = 80;

/** A value as JSON, short enough for the title of a test. */
export function shortLabel(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length <= MOST_CHARACTERS ? text : `${text.slice(0, 40)}… (${text.length} characters)`;
}

/** Rows for test.each, each with a label in front. */
export function labelled<T>(values: readonly T[]): [label: string, value: T][] {
  return values.map((value) => [shortLabel(value), value]);
}
