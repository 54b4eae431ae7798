import { AgentError } from "../guest/agent-error.ts";
import { SessionError, type SessionErrorCode } from "./session-error.ts";

const WHAT: Readonly<Record<string, { code: SessionErrorCode; sentence: (subject: string) => string }>> = {
  bad_cwd: {
    code: "bad_cwd",
    sentence: (cwd) =>
      `cwd '${cwd}' is not a directory in the session. Create it with mkdir -p, or pass one that exists.`,
  },
  is_directory: {
    code: "bad_path",
    sentence: (path) => `'${path}' is a directory in the session. Name a file in it.`,
  },
  not_found: { code: "bad_path", sentence: (path) => `'${path}' does not exist in the session.` },
  bad_path: {
    code: "bad_path",
    sentence: (path) =>
      `'${path}' cannot be a file in the session: a part of it is not a directory, or is too long.`,
  },
  too_many_runs: {
    code: "too_many_runs",
    sentence: () =>
      "64 runs go on in the session, or processes of 512 that ended. Wait for one to end, or end one: poll with its run_id and signal KILL.",
  },
  no_space: {
    code: "no_space",
    sentence: (path) =>
      `there is no space left in the session for '${path}'. Remove files with run, or reset the session.`,
  },
};

/** An agent's refusal as an error for the caller; `subject` is the path it was about. Other errors pass unchanged. */
export function explainRefusal(error: unknown, subject: string, otherwise: SessionErrorCode): unknown {
  if (!(error instanceof AgentError) || error.code !== "agent_refused") return error;
  const refusal = error.refusal ?? "";
  // The guest chooses the name, and every object has members that are not its own.
  const known = Object.hasOwn(WHAT, refusal) ? WHAT[refusal] : undefined;
  if (known) return new SessionError(known.code, known.sentence(subject), error);
  const errno = error.errno === null ? "" : ` (${error.errno})`;
  return new SessionError(
    otherwise,
    `the guest refused: ${error.refusal}${errno}. Try again, or reset the session.`,
    error,
  );
}
