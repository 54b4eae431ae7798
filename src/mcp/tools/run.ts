import * as z from "zod";
import type { RunResult } from "../../session/session-service.ts";
import { command, guestPath, sessionId, stdin, timeoutS } from "../argument-schemas.ts";
import { defineTool } from "../tool.ts";
import { jsonResult, resultSchema } from "../tool-result.ts";

const DEFAULT_TIMEOUT_S = 30;

export const run = defineTool({
  describe: ({ net }) => ({
    name: "run",
    description:
      "Runs one shell command in a session and returns its output and exit code. Each call is a new `sh -c`: " +
      "pass cwd, or write `cd x && …`; exported variables are gone by the next call. " +
      "At the timeout the command and its children are killed and what they printed is returned. " +
      "Long output is cut in the middle; the file named in stdout_path or stderr_path has all of it.",
    inputSchema: {
      type: "object",
      properties: {
        session_id: { type: "string", description: "From open_session" },
        command: { type: "string", description: "Shell text, at most 1 MiB" },
        timeout_s: {
          type: "number",
          description: "Seconds until it is killed; default 30",
          minimum: 0.001,
          maximum: 3600,
        },
        cwd: { type: "string", description: "Directory to start in; default /root" },
        stdin: { type: "string", description: "Text for stdin, at most 32 MiB; default no input" },
      },
      required: ["session_id", "command"],
    },
    outputSchema: resultSchema({
      stdout: { type: "string" },
      stderr: { type: "string" },
      exit_code: { type: "integer", description: "124 after a timeout, -N when signal N ended it" },
      timed_out: { type: "boolean" },
      duration_ms: { type: "number" },
      signal: { type: "string", description: "Signal that ended the shell, if one did" },
      stdout_bytes: { type: "integer", description: "Size before any cut" },
      stderr_bytes: { type: "integer" },
      stdout_truncated: { type: "boolean" },
      stderr_truncated: { type: "boolean" },
      stdout_path: { type: "string", description: "File in the VM with all of it, if cut" },
      stderr_path: { type: "string" },
    }),
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: net },
  }),
  arguments: z.strictObject({
    session_id: sessionId,
    command,
    timeout_s: timeoutS.optional(),
    cwd: guestPath("cwd", "Pass a directory in the VM, or leave it out for /root.").optional(),
    stdin: stdin.optional(),
  }),
  async perform(sessions, given, call) {
    const request = {
      command: given.command,
      timeoutMs: Math.round((given.timeout_s ?? DEFAULT_TIMEOUT_S) * 1000),
      cwd: given.cwd ?? null,
      stdin: given.stdin ?? null,
    };
    return jsonResult(toWire(await sessions.run(given.session_id, request, call)));
  },
});

function toWire(result: RunResult): Record<string, unknown> {
  return {
    stdout: result.stdout,
    stderr: result.stderr,
    exit_code: result.exitCode,
    timed_out: result.timedOut,
    duration_ms: result.durationMs,
    ...(result.signal !== null && { signal: result.signal }),
    stdout_bytes: result.stdoutBytes,
    stderr_bytes: result.stderrBytes,
    stdout_truncated: result.isStdoutCut,
    stderr_truncated: result.isStderrCut,
    ...(result.stdoutPath !== null && { stdout_path: result.stdoutPath }),
    ...(result.stderrPath !== null && { stderr_path: result.stderrPath }),
  };
}
