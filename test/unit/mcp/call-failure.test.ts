import { expect, test } from "bun:test";
import type { LogFields } from "../../../src/base/logger.ts";
import { ArgumentError } from "../../../src/mcp/argument-error.ts";
import { describeFailure } from "../../../src/mcp/call-failure.ts";
import { failureResult } from "../../../src/mcp/tool-result.ts";
import { SessionError } from "../../../src/session/session-error.ts";

function recordingLog() {
  const lines: LogFields[] = [];
  const record = (fields: LogFields) => void lines.push(fields);
  return { lines, log: { debug: record, info: record, warn: record, error: record } };
}

test("a session error keeps its code and sentence", () => {
  const { log, lines } = recordingLog();
  const failure = describeFailure(new SessionError("dead_session", "Session ses_1 has ended."), log);
  expect(failure).toEqual({ code: "dead_session", message: "Session ses_1 has ended.", retryable: false });
  expect(lines).toEqual([]);
});

test("only what may go better next time is retryable", () => {
  const { log } = recordingLog();
  const retryable = (code: ConstructorParameters<typeof SessionError>[0]) =>
    describeFailure(new SessionError(code, "x"), log).retryable;
  expect(retryable("session_cap")).toBe(true);
  expect(retryable("session_busy")).toBe(true);
  expect(retryable("too_many_runs")).toBe(true);
  expect(retryable("unknown_session")).toBe(false);
  expect(retryable("no_space")).toBe(false);
  expect(describeFailure(new ArgumentError("bad_argument", "x"), log).retryable).toBe(false);
});

test("the details of a bug go to the log and never to the caller", () => {
  const { log, lines } = recordingLog();
  const bug = new TypeError("secret at /some/place");
  const failure = describeFailure(bug, log);
  expect(failure.code).toBe("internal_error");
  expect(JSON.stringify(failure)).not.toContain("secret");
  expect(lines).toEqual([{ err: bug }]);
});

test("text and structure of a failure say the same", () => {
  const failure = { code: "bad_path", message: "No such path.", retryable: false };
  expect(failureResult(failure)).toEqual({
    isError: true,
    content: [{ type: "text", text: "bad_path: No such path." }],
    structuredContent: { error: failure },
  });
});
