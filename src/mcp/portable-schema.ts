/** The part of JSON Schema that every client's converter keeps; docs/adr/0004-portable-tool-schemas.md. */
export type PortableSchema =
  | { type: "string"; description?: string; enum?: readonly string[] }
  | { type: "number" | "integer"; description?: string; minimum?: number; maximum?: number }
  | { type: "boolean"; description?: string }
  | { type: "array"; description?: string; items: PortableSchema }
  | PortableObject;

export interface PortableObject {
  type: "object";
  description?: string;
  properties: Readonly<Record<string, PortableSchema>>;
  required?: readonly string[];
}
