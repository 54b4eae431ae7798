import * as z from "zod";
import { kindOf } from "../mcp/argument-schemas.ts";
import type { PortableSchema } from "../mcp/portable-schema.ts";

/** A tool's arguments as clients see them; all that is enforced beyond is in input-rules.ts. */
export type Fields = Readonly<Record<string, PortableSchema>>;

type ValueOf<Field> = Field extends { type: "string" }
  ? string
  : Field extends { type: "integer" | "number" }
    ? number
    : Field extends { type: "boolean" }
      ? boolean
      : Field extends { type: "array"; items: infer Item }
        ? ValueOf<Item>[]
        : never;

/** The checked arguments of a call. */
export type Given<F extends Fields, Required extends keyof F> = {
  [Name in Required]: ValueOf<F[Name]>;
} & { [Name in Exclude<keyof F, Required>]?: ValueOf<F[Name]> };

/** Checks types and names, and that what is required is there. */
export function argumentsSchema(fields: Fields, required: readonly string[]): z.ZodObject {
  const shape = Object.entries(fields).map(([name, field]) => {
    const value = valueSchema(name, field);
    return [name, required.includes(name) ? value : value.optional()] as const;
  });
  // Some clients cannot call a tool without sending something: what they send is ignored.
  return shape.length === 0 ? z.object({}) : z.strictObject(Object.fromEntries(shape));
}

function valueSchema(name: string, field: PortableSchema): z.ZodType {
  switch (field.type) {
    case "string":
      return z.string(wrongType(name, "text"));
    case "integer":
      return z.int(wrongType(name, "a whole number"));
    case "number":
      return z.number(wrongType(name, "a number"));
    case "boolean":
      return z.boolean(wrongType(name, "true or false"));
    case "array":
      return z.array(valueSchema(`each of ${name}`, field.items), wrongType(name, "an array"));
    case "object":
      return z.looseObject({}, wrongType(name, "an object"));
  }
}

function wrongType(name: string, wanted: string) {
  return {
    error: ({ input }: { input?: unknown }) =>
      input === undefined ? `${name} is missing.` : `${name} must be ${wanted}, not ${kindOf(input)}.`,
  };
}
