import * as z from "zod";
import type { ToolSet } from "../../config/config.ts";
import { DEFAULT_OUTPUT_BYTES } from "../../session/run-contract.ts";
import {
  command,
  flag,
  guestPath,
  maxOutputBytes,
  runId,
  sessionId,
  stdin,
  timeoutS,
} from "../argument-schemas.ts";
import { parseArguments } from "../parse-arguments.ts";
import type { PortableSchema } from "../portable-schema.ts";
import { runFields } from "../run-fields.ts";
import type { Perform, ServerFacts, Tool, ToolDocument } from "../tool.ts";
import { jsonResult, resultSchema } from "../tool-result.ts";

const DEFAULT_TIMEOUT_S = 30;
const DEFAULT_BACKGROUND_TIMEOUT_S = 3600;

const LONG_RUNS: Record<ToolSet, { sentence: string; argument: Record<string, PortableSchema> }> = {
  core: {
    sentence: "A command that outlasts the call answers running: true; pass its run_id to wait on.",
    argument: {
      run_id: { type: "string", description: 'Wait on for this run; pass command ""' },
    },
  },
  all: {
    sentence:
      "For servers and long work pass background: true, then poll, as for any answer with running: true.",
    argument: {
      background: {
        type: "boolean",
        description: "Answer at once, keep stdin open; default timeout_s 3600",
      },
    },
  },
};

const START = z.strictObject({
  session_id: sessionId,
  command,
  timeout_s: timeoutS.optional(),
  cwd: guestPath("cwd", "Pass a directory in the VM, or leave it out for /root.").optional(),
  stdin: stdin.optional(),
  max_output_bytes: maxOutputBytes.optional(),
  background: flag("background").optional(),
  run_id: runId.optional(),
});
/** What else is passed along is of no use here. */
const WAIT_ON = z.object({ session_id: sessionId, run_id: runId });

/** Starts a run, or waits on for one that outlasted its call. */
export const run: Tool = {
  describe,
  prepare(given) {
    return given["run_id"] ? waitOn(parseArguments(WAIT_ON, given)) : start(parseArguments(START, given));
  },
};

function waitOn(given: z.output<typeof WAIT_ON>): Perform {
  return async (sessions, call) =>
    jsonResult(runFields(await sessions.awaitRun(given.session_id, given.run_id, call)));
}

function start(given: z.output<typeof START>): Perform {
  const isBackground = given.background ?? false;
  const defaultTimeoutS = isBackground ? DEFAULT_BACKGROUND_TIMEOUT_S : DEFAULT_TIMEOUT_S;
  const request = {
    command: given.command,
    timeoutMs: Math.round((given.timeout_s ?? defaultTimeoutS) * 1000),
    cwd: given.cwd ?? null,
    stdin: given.stdin ?? null,
    maxOutputBytes: given.max_output_bytes ?? DEFAULT_OUTPUT_BYTES,
    isBackground,
  };
  return async (sessions, call) => jsonResult(runFields(await sessions.run(given.session_id, request, call)));
}

function describe({ net, egress, tools }: ServerFacts): ToolDocument {
  return {
    name: "run",
    description:
      "Runs one shell command in a session and returns its output and exit code. Each call is a new `sh -c`: " +
      "pass cwd, or write `cd x && …`; exported variables are gone by the next call. " +
      "At the timeout the command and its children are killed and what they printed is returned. " +
      `Long output is cut in the middle; stdout_path names the file with all of it. ${LONG_RUNS[tools].sentence}`,
    inputSchema: {
      type: "object",
      properties: {
        session_id: { type: "string", description: "From open_session" },
        command: { type: "string", description: "Shell text, at most 1 MiB" },
        timeout_s: { type: "number", description: "Seconds until it is killed, at most 3600; default 30" },
        cwd: { type: "string", description: "Directory to start in; default /root" },
        stdin: { type: "string", description: "Text for stdin, at most 32 MiB; default no input" },
        max_output_bytes: {
          type: "integer",
          description: "Shown of each stream; default 32768, at most 1 MiB",
        },
        ...LONG_RUNS[tools].argument,
      },
      required: ["session_id", "command"],
    },
    outputSchema: resultSchema({
      stdout: { type: "string" },
      stderr: { type: "string" },
      exit_code: { type: "integer", description: "124 after a timeout, -N when signal N ended it" },
      timed_out: { type: "boolean" },
      stdout_bytes: { type: "integer", description: "Before any cut" },
      stdout_truncated: { type: "boolean" },
      stdout_path: { type: "string" },
      running: { type: "boolean" },
      run_id: { type: "string" },
    }),
    annotations: { openWorldHint: net || egress.kind !== "deny_all" },
  };
}
