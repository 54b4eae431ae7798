import { expect, test } from "bun:test";
import { AgentError } from "../../../src/guest/agent-error.ts";
import { explainRefusal } from "../../../src/session/guest-refusal.ts";
import { SessionError } from "../../../src/session/session-error.ts";

function refused(refusal: string, errno: string | null = null): AgentError {
  return new AgentError("agent_refused", "text", { refusal, errno });
}

test.each([
  ["bad_cwd", "bad_cwd", "cwd '/x' is not a directory in the session. Create it"],
  ["is_directory", "bad_path", "'/x' is a directory in the session. Name a file in it."],
  ["not_found", "bad_path", "'/x' does not exist in the session."],
  ["bad_path", "bad_path", "'/x' cannot be a file in the session"],
  ["too_many_runs", "too_many_runs", "64 runs go on in the session, or processes of 512 that ended. Wait"],
  ["no_space", "no_space", "no space left in the session for '/x'. Remove files"],
])("the guest's %s becomes %s with a sentence", (refusal, code, sentence) => {
  const error = explainRefusal(refused(refusal), "/x", "write_failed") as SessionError;
  expect(error).toBeInstanceOf(SessionError);
  expect(error.code).toBe(code as SessionError["code"]);
  expect(error.message).toContain(sentence);
});

test("any other refusal names the guest's code and errno", () => {
  const error = explainRefusal(refused("io_failed", "EIO"), "/x", "write_failed") as SessionError;
  expect(error).toMatchObject({ code: "write_failed" });
  expect(error.message).toBe("the guest refused: io_failed (EIO). Try again, or reset the session.");
});

test("a refusal named like a member of every object is no known one", () => {
  const error = explainRefusal(refused("constructor"), "/x", "run_failed") as SessionError;
  expect(error.code).toBe("run_failed");
});

test("errors that are no refusals pass unchanged", () => {
  for (const error of [new AgentError("agent_lost", "x"), new Error("x"), "x"])
    expect(explainRefusal(error, "/", "run_failed")).toBe(error);
});
