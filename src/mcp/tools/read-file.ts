import * as z from "zod";
import type { FileExcerpt, FileRange } from "../../session/read-file.ts";
import { guestPath, kindOf, sessionId, wholeNumber } from "../argument-schemas.ts";
import { defineTool } from "../tool.ts";
import { jsonResult } from "../tool-result.ts";

const DEFAULT_BYTES = 32_768;
const MAX_BYTES = 1_048_576;

export const readFile = defineTool({
  describe: () => ({
    name: "read_file",
    description:
      "Reads a file, or a range of its lines or bytes, for long or binary files; left_bytes says what follows.",
    inputSchema: {
      type: "object",
      properties: {
        session_id: { type: "string", description: "From open_session" },
        path: { type: "string", description: "Absolute, or relative to /root" },
        encoding: { type: "string", description: "Default text", enum: ["text", "base64"] },
        offset: { type: "integer", description: "First byte" },
        max_bytes: { type: "integer", description: "Default 32768, at most 1 MiB" },
        start_line: { type: "integer", description: "From 1" },
        end_line: { type: "integer", description: "Last line" },
      },
      required: ["session_id", "path"],
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  }),
  arguments: z
    .strictObject({
      session_id: sessionId,
      path: guestPath("path", "Pass the file's path in the VM, absolute or relative to /root."),
      encoding: z
        .enum(["text", "base64"], {
          error: ({ input }) => `encoding is ${shown(input)}. Pass text or base64, or leave it out for text.`,
        })
        .optional(),
      offset: wholeNumber("offset", 0, Number.MAX_SAFE_INTEGER, "the start").optional(),
      max_bytes: wholeNumber("max_bytes", 1, MAX_BYTES, String(DEFAULT_BYTES)).optional(),
      start_line: wholeNumber("start_line", 1, Number.MAX_SAFE_INTEGER, "the first").optional(),
      end_line: wholeNumber("end_line", 1, Number.MAX_SAFE_INTEGER, "the last").optional(),
    })
    .refine((given) => given.offset === undefined || (given.start_line ?? given.end_line) === undefined, {
      error: "offset goes with bytes, start_line and end_line go with lines. Pass one or the other.",
    })
    .refine((given) => (given.end_line ?? Number.POSITIVE_INFINITY) >= (given.start_line ?? 1), {
      error: "end_line is before start_line. Pass an end_line that is not.",
    }),
  async perform(sessions, given, call) {
    const hasLines = given.start_line !== undefined || given.end_line !== undefined;
    const range: FileRange = {
      encoding: given.encoding ?? "text",
      maxBytes: given.max_bytes ?? DEFAULT_BYTES,
      offset: given.offset ?? 0,
      lines: hasLines ? { first: given.start_line ?? 1, last: given.end_line ?? null } : null,
    };
    return jsonResult(toWire(await sessions.readFile(given.session_id, given.path, range, call)));
  },
});

function shown(input: unknown): string {
  return typeof input === "string" ? JSON.stringify(input.slice(0, 40)) : kindOf(input);
}

function toWire(excerpt: FileExcerpt): Record<string, unknown> {
  return {
    content: excerpt.content,
    ...(excerpt.hasReplacements && { invalid_utf8: true }),
    offset: excerpt.offset,
    bytes: excerpt.bytes,
    file_bytes: excerpt.fileBytes,
    left_bytes: excerpt.leftBytes,
  };
}
