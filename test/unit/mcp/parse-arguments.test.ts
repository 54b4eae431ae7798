import { expect, test } from "bun:test";
import * as z from "zod";
import { ArgumentError } from "../../../src/mcp/argument-error.ts";
import {
  command,
  contentBase64,
  guestPath,
  sessionId,
  stdin,
  timeoutS,
} from "../../../src/mcp/argument-schemas.ts";
import { parseArguments } from "../../../src/mcp/parse-arguments.ts";

const RUN = z.strictObject({
  session_id: sessionId,
  command,
  timeout_s: timeoutS.optional(),
  cwd: guestPath("cwd", "Pass a directory.").optional(),
  stdin: stdin.optional(),
});
const WRITE = z.strictObject({ path: guestPath("path", "Pass a path."), content_base64: contentBase64 });
const SOUND = { session_id: "ses_1", command: "true" };

function complaint(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof ArgumentError) return error.message;
    throw error;
  }
  throw new Error("nothing was refused");
}

const runComplaint = (given: Record<string, unknown>) =>
  complaint(() => parseArguments(RUN, { ...SOUND, ...given }));
const writeComplaint = (given: Record<string, unknown>) =>
  complaint(() => parseArguments(WRITE, { path: "/a", content_base64: "", ...given }));

test("null means absent for every optional argument, and so does empty text", () => {
  const nulls = { timeout_s: null, cwd: null, stdin: null, never_heard_of: null };
  expect(parseArguments(RUN, { ...SOUND, ...nulls })).toEqual(SOUND);
  expect(parseArguments(RUN, { ...SOUND, timeout_s: "", cwd: "" })).toEqual(SOUND);
});

test("empty stdin is input of no bytes, not the absence of input", () => {
  expect(parseArguments(RUN, { ...SOUND, stdin: "" }).stdin).toEqual(Buffer.alloc(0));
  expect(parseArguments(RUN, { ...SOUND, stdin: "é" }).stdin).toEqual(Buffer.from([0xc3, 0xa9]));
});

test("empty content is an empty file", () => {
  expect(parseArguments(WRITE, { path: "/a", content_base64: "" }).content_base64).toEqual(new Uint8Array());
});

test("null or nothing for a required argument is told as missing", () => {
  expect(runComplaint({ session_id: null })).toBe(
    "session_id is missing. Pass the id that open_session returned.",
  );
  expect(runComplaint({ command: undefined })).toBe("command is missing. Pass the shell text to run.");
  expect(writeComplaint({ content_base64: null })).toStartWith("content_base64 is missing.");
});

test("a wrong type is named with what was given", () => {
  expect(runComplaint({ session_id: 7 })).toStartWith("session_id must be text, not a number.");
  expect(runComplaint({ session_id: ["ses_1"] })).toStartWith("session_id must be text, not an array.");
  expect(runComplaint({ command: { shell: "ls" } })).toStartWith("command must be text, not an object.");
  expect(runComplaint({ cwd: true })).toStartWith("cwd must be text, not a boolean.");
  expect(runComplaint({ timeout_s: "30" })).toStartWith("timeout_s must be a number of seconds, not text.");
});

test("a timeout may be a fraction and must be within its limits", () => {
  for (const timeout_s of [0.001, 0.5, 30, 3600]) {
    expect(parseArguments(RUN, { ...SOUND, timeout_s }).timeout_s).toBe(timeout_s);
  }
  for (const timeout_s of [0, -1, 0.0009, 3600.5, 1e300]) {
    expect(runComplaint({ timeout_s })).toStartWith(
      `timeout_s is ${timeout_s}. Pass a number from 0.001 to 3600, or leave it out for 30;`,
    );
  }
  expect(runComplaint({ timeout_s: Number.NaN })).toContain("timeout_s must be a number of seconds");
});

test("a command is 1 byte to 1 MiB of UTF-8 without NUL", () => {
  expect(parseArguments(RUN, { ...SOUND, command: "x".repeat(1_048_576) }).command).toHaveLength(1_048_576);
  expect(runComplaint({ command: "" })).toBe("command is empty. Pass the shell text to run.");
  expect(runComplaint({ command: "é".repeat(524_289) })).toStartWith(
    "command has 1048578 bytes; the limit is 1048576.",
  );
  expect(runComplaint({ command: "a\0b" })).toStartWith("command contains a NUL character.");
});

test("a path is not empty, has no NUL and fits the guest's limit", () => {
  expect(writeComplaint({ path: "" })).toBe("path is empty. Pass a path.");
  expect(writeComplaint({ path: "/a\0" })).toBe("path contains a NUL character. Pass a path.");
  expect(writeComplaint({ path: `/${"a".repeat(4095)}` })).toBe(
    "path has 4096 bytes; the limit is 4095. Pass a path.",
  );
  expect(parseArguments(WRITE, { path: "a".repeat(4095), content_base64: "" }).path).toHaveLength(4095);
});

test("content must be sound base64", () => {
  expect(writeComplaint({ content_base64: "a b-c" })).toBe(
    'content_base64 has "-" of the URL alphabet at character 4. Pass standard base64 (A-Z a-z 0-9 + /) with = padding.',
  );
});

test("content and stdin of 32 MiB are taken and one byte more is told with the limit", () => {
  const limitBytes = 33_554_432;
  const base64 = (sizeBytes: number) => Buffer.alloc(sizeBytes).toString("base64");
  const taken = parseArguments(WRITE, { path: "/a", content_base64: base64(limitBytes) });
  expect(taken.content_base64.byteLength).toBe(limitBytes);
  const tooLong = `has ${limitBytes + 1} bytes; the limit is ${limitBytes}.`;
  expect(writeComplaint({ content_base64: base64(limitBytes + 1) })).toStartWith(`content_base64 ${tooLong}`);
  expect(runComplaint({ stdin: "x".repeat(limitBytes + 1) })).toStartWith(`stdin ${tooLong}`);
});

test("a session id no server ever gave out is refused without repeating it", () => {
  const message = runComplaint({ session_id: "s".repeat(5000) });
  expect(message).toStartWith("session_id is 5000 characters long");
  expect(message.length).toBeLessThan(200);
});

test("an unknown argument is refused and its nearest relative named", () => {
  expect(runComplaint({ timeout: 60 })).toBe(
    'There is no argument "timeout" (did you mean timeout_s?). Pass only session_id, command, timeout_s, cwd, stdin.',
  );
  expect(writeComplaint({ content: "hi" })).toContain('"content" (did you mean content_base64?)');
  expect(runComplaint({ description: "lists" })).toStartWith('There is no argument "description". Pass only');
});

test("everything that is wrong is told at once", () => {
  const message = runComplaint({ session_id: 7, timeout_s: 0, colour: "red" });
  expect(message).toContain("session_id must be text");
  expect(message).toContain("timeout_s is 0");
  expect(message).toContain('no argument "colour"');
});
