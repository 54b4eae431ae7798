import { EgressError } from "./egress-error.ts";

/** RFC 9112, without what it lets a lenient server accept */
export const MAX_HEAD_BYTES = 16_384;
const MAX_FIELDS = 128;
const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([\x21-\x7e]+) HTTP\/1\.([01])$/;
const FIELD =
  /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*((?:[\x21-\x7e\x80-\xff](?:[\x20-\x7e\x80-\xff\t]*[\x21-\x7e\x80-\xff])?)?)[ \t]*$/;
const MAX_LENGTH_DIGITS = 15;

export interface RequestHead {
  method: string;
  target: string;
  minorVersion: 0 | 1;
  /** Names in lower case, values as sent, one character per byte */
  fields: readonly (readonly [name: string, value: string])[];
  framing: BodyFraming;
}

export type BodyFraming = { kind: "length"; bytes: number } | { kind: "chunked" };

/** Where the head ends, behind its empty line; -1 when it has not ended. */
export function endOfHead(bytes: Uint8Array): number {
  const at = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).indexOf("\r\n\r\n");
  return at < 0 ? -1 : at + 4;
}

/**
 * Reads a head with its empty line. Throws `bad_request` for whatever two servers could read in two ways: a lone CR or
 * LF, a folded line, a space before a colon, two lengths, a length and chunks, two hosts.
 */
export function parseHead(bytes: Uint8Array): RequestHead {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
  const [first = "", ...rest] = text.slice(0, -4).split("\r\n");
  const line = REQUEST_LINE.exec(first);
  if (!line) throw badRequest("its first line is malformed");
  if (rest.length > MAX_FIELDS) throw badRequest(`it has more than ${MAX_FIELDS} header fields`);
  const fields = rest.map((field) => {
    const match = FIELD.exec(field);
    if (!match) throw badRequest("a header field is malformed");
    return [match[1]!.toLowerCase(), match[2]!] as const;
  });
  const minorVersion = line[3] === "1" ? 1 : 0;
  const head = { method: line[1]!, target: line[2]!, minorVersion, fields } as const;
  const hosts = valuesOf(head, "host");
  if (hosts.length > 1 || (hosts.length === 0 && minorVersion === 1))
    throw badRequest("it must have one Host field");
  return { ...head, framing: framingOf(head) };
}

export function valuesOf({ fields }: Pick<RequestHead, "fields">, name: string): string[] {
  return fields.filter(([field]) => field === name).map(([, value]) => value);
}

export function badRequest(why: string): EgressError {
  return new EgressError("bad_request", `the HTTP request is not served: ${why}`);
}

function framingOf(head: Omit<RequestHead, "framing">): BodyFraming {
  const lengths = valuesOf(head, "content-length");
  const codings = valuesOf(head, "transfer-encoding");
  if (lengths.length + codings.length > 1) throw badRequest("it says its length more than once");
  const [length] = lengths;
  if (length !== undefined) {
    if (!/^\d+$/.test(length) || length.length > MAX_LENGTH_DIGITS)
      throw badRequest("its Content-Length is no number");
    return { kind: "length", bytes: Number(length) };
  }
  if (codings.length === 0) return { kind: "length", bytes: 0 };
  if (codings[0]!.toLowerCase() !== "chunked" || head.minorVersion === 0)
    throw badRequest("its Transfer-Encoding is not chunked");
  return { kind: "chunked" };
}
