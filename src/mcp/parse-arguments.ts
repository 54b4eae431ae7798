import type * as z from "zod";
import { nearestName } from "../base/nearest-name.ts";
import { ArgumentError } from "./argument-error.ts";

/** Optional arguments for which "" is a value of its own and not the absence of one. */
const EMPTY_IS_A_VALUE: ReadonlySet<string> = new Set(["stdin"]);

/**
 * Checks the arguments of one call. Clients fill optional arguments with null or "", so both count as absent.
 * Throws `ArgumentError` that names everything that is wrong.
 */
export function parseArguments<Schema extends z.ZodObject>(
  schema: Schema,
  given: Readonly<Record<string, unknown>>,
): z.output<Schema> {
  const present = Object.entries(given).filter(([name, value]) => !isAbsent(schema, name, value));
  const parsed = schema.safeParse(Object.fromEntries(present));
  if (parsed.success) return parsed.data;
  const known = Object.keys(schema.shape);
  const sentences = parsed.error.issues.map((issue) =>
    issue.code === "unrecognized_keys" ? unknownArguments(issue.keys, known) : issue.message,
  );
  throw new ArgumentError("bad_argument", sentences.join(" "));
}

function isAbsent(schema: z.ZodObject, name: string, value: unknown): boolean {
  if (value === null || value === undefined) return true;
  const field = schema.shape[name];
  return value === "" && field?.def.type === "optional" && !EMPTY_IS_A_VALUE.has(name);
}

function unknownArguments(names: readonly string[], known: readonly string[]): string {
  const shown = names.slice(0, 3).map((name) => {
    const brief = JSON.stringify(name.slice(0, 40));
    const nearest = nearestName(name, known);
    return nearest ? `${brief} (did you mean ${nearest}?)` : brief;
  });
  return `There is no argument ${shown.join(", ")}. Pass only ${known.join(", ")}.`;
}
