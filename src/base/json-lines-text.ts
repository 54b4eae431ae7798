import { parseJson } from "./parse-json.ts";
/** What a file of one JSON object a line holds. */
export interface JsonLinesContent {
  /** The first line's first */
  records: Record<string, unknown>[];
  /** Lines that are no object, such as one that a crash or a full disk cut off */
  damagedLines: number;
}

/** Reads around what is damaged: what is behind it is whole. */
export function parseJsonLines(text: string): JsonLinesContent {
  const lines = text.split("\n").filter((line) => line !== "");
  const records = lines.map(parseJsonLine).filter((record) => record !== null);
  return { records, damagedLines: lines.length - records.length };
}

/** Null for what is no object. */
export function parseJsonLine(line: string): Record<string, unknown> | null {
  const record = parseJson(line);
  const isObject = typeof record === "object" && record !== null && !Array.isArray(record);
  return isObject ? (record as Record<string, unknown>) : null;
}
