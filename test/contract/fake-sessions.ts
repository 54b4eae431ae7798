import type { FileExcerpt, FileRange } from "../../src/session/read-file.ts";
import type { PolledRun, PollRequest, RunRequest, RunResult } from "../../src/session/run-contract.ts";
import { SessionError } from "../../src/session/session-error.ts";
import type {
  CallContext,
  OpenedSession,
  SessionService,
  SessionSummary,
} from "../../src/session/session-service.ts";
import type { TakenCheckpoint } from "../../src/session/vm-source.ts";

/**
 * Sessions without VMs that keep the contract: files in a map, and commands that do what a test needs:
 * `echo TEXT`, `where`, `stdin`, `cat PATH`, `size PATH`, `big BYTES`, `killed`, `hang` (until cancelled), `progress`,
 * `print` (a stray console.log), `bug`, `starve` (ends for want of everything), `long` (goes on without its call).
 */
export class FakeSessions implements SessionService {
  readonly #files = new Map<string, Map<string, Uint8Array>>();
  readonly #disposal = new AbortController();
  #opened = 0;
  /** Files of the checkpoint */
  #kept: Map<string, Uint8Array> | null = null;

  async open(call: CallContext): Promise<OpenedSession> {
    call.progress?.("cloning base");
    this.#opened += 1;
    const sessionId = `ses_${this.#opened}`;
    this.#files.set(sessionId, new Map());
    return { sessionId };
  }

  async run(sessionId: string, request: RunRequest, call: CallContext): Promise<RunResult | PolledRun> {
    const files = this.#session(sessionId);
    const [verb, ...rest] = request.command.split(" ");
    const argument = rest.join(" ");
    switch (verb) {
      case "echo":
        return result({ stdout: `${argument}\n` });
      case "where":
        return result({
          stdout: JSON.stringify({
            cwd: request.cwd,
            timeoutMs: request.timeoutMs,
            maxOutputBytes: request.maxOutputBytes,
          }),
        });
      case "stdin":
        return result({ stdout: request.stdin ? `got ${request.stdin.length} bytes` : "no stdin" });
      case "cat": {
        const content = files.get(argument);
        if (!content) return result({ stderr: `cat: ${argument}: No such file or directory\n`, exitCode: 1 });
        return result({ stdout: new TextDecoder().decode(content) });
      }
      case "size":
        return result({ stdout: String(files.get(argument)?.length) });
      case "big":
        return result({
          stdout: "x".repeat(Number(argument)),
          stdoutBytes: 1_000_000,
          isStdoutCut: true,
          stdoutPath: "/tmp/run.out",
        });
      case "killed":
        return result({ exitCode: -9, signal: "SIGKILL" });
      case "hang":
        return await this.#hang(call);
      case "progress":
        for (const state of ["first", "second", "third"]) call.progress?.(state);
        return result({});
      case "print":
        console.log("a stray line for stdout");
        console.table([{ stray: true }]);
        return result({ stdout: "printed" });
      case "starve":
        return result({ exitCode: 1, oomKilled: true, diskFull: true, tooManyProcesses: true });
      case "long":
        return polled({ stdout: JSON.stringify(request.isBackground), hasMore: true });
      case "bug":
        throw new TypeError("secret detail of a bug");
      default:
        return result({ stderr: `sh: ${verb}: not found\n`, exitCode: 127 });
    }
  }

  async awaitRun(sessionId: string, runId: string): Promise<RunResult> {
    this.#session(sessionId);
    return result({ stdout: `waited for ${runId}` });
  }

  /** Shows what reached it. */
  async poll(sessionId: string, runId: string, request: PollRequest): Promise<PolledRun> {
    this.#session(sessionId);
    const stdout = JSON.stringify({
      ...request,
      stdin: request.stdin && Buffer.from(request.stdin).toString(),
    });
    return { ...polled({ stdout, end: result({ exitCode: 7 }) }), runId };
  }

  /** Shows what reached it. */
  async readFile(sessionId: string, path: string, range: FileRange): Promise<FileExcerpt> {
    this.#session(sessionId);
    const content = JSON.stringify({ path, ...range });
    return { content, hasReplacements: true, offset: 1, bytes: 2, fileBytes: 10, leftBytes: 7 };
  }

  list(): SessionSummary[] {
    const used = { state: "ready", ageMs: 61_000, idleMs: 1550 };
    return [...this.#files.keys()].map((sessionId, index) =>
      index === 0
        ? { sessionId, ...used, runs: 0, closesInMs: 598_450 }
        : { sessionId, ...used, idleMs: 0, runs: 2, closesInMs: null },
    );
  }

  async writeFile(sessionId: string, path: string, content: Uint8Array): Promise<void> {
    this.#session(sessionId).set(path, content);
  }

  async reset(sessionId: string): Promise<void> {
    this.#session(sessionId).clear();
  }

  async checkpoint(sessionId: string): Promise<TakenCheckpoint> {
    this.#kept = new Map(this.#session(sessionId));
    return { checkpointId: "chk_1", bytesWritten: 1234, pausedMs: 1.5 };
  }

  async fork(checkpointId: string, call: CallContext): Promise<OpenedSession> {
    if (checkpointId !== "chk_1" || !this.#kept)
      throw new SessionError("unknown_checkpoint", `There is no checkpoint ${checkpointId}. Make one.`);
    const opened = await this.open(call);
    this.#files.set(opened.sessionId, new Map(this.#kept));
    return opened;
  }

  async close(sessionId: string): Promise<void> {
    this.#session(sessionId);
    this.#files.delete(sessionId);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposal.abort();
  }

  #session(sessionId: string): Map<string, Uint8Array> {
    const files = this.#files.get(sessionId);
    if (files) return files;
    throw new SessionError(
      "unknown_session",
      `There is no session ${sessionId}. Start one with open_session.`,
    );
  }

  async #hang({ signal }: CallContext): Promise<RunResult> {
    const { promise, reject } = Promise.withResolvers<never>();
    const cancelled = () => {
      process.stderr.write("the call was cancelled\n");
      reject(new SessionError("cancelled", "The call was cancelled."));
    };
    signal.addEventListener("abort", cancelled, { once: true });
    this.#disposal.signal.addEventListener("abort", () =>
      reject(new SessionError("shutting_down", "The server is shutting down. Start it again to go on.")),
    );
    process.stderr.write("the call hangs\n");
    return await promise;
  }
}

const NO_OUTPUT = {
  stdout: "",
  stderr: "",
  hasStdoutReplacements: false,
  hasStderrReplacements: false,
  stdoutPath: null,
  stderrPath: null,
};

function result(shown: Partial<RunResult>): RunResult {
  const ended = { exitCode: 0, timedOut: false, signal: null, durationMs: 0.5 };
  const sound = { oomKilled: false, diskFull: false, tooManyProcesses: false };
  const cut = { isStdoutCut: shown.stdoutPath !== undefined, isStderrCut: false };
  const merged = { ...NO_OUTPUT, ...ended, ...sound, ...cut, ...shown };
  return {
    ...merged,
    stdoutBytes: shown.stdoutBytes ?? merged.stdout.length,
    stderrBytes: shown.stderrBytes ?? merged.stderr.length,
  };
}

function polled(shown: Partial<PolledRun>): PolledRun {
  const run = { runId: "run_1", end: null, cursor: "4:0", hasMore: false, stdoutBytes: 9, stderrBytes: 0 };
  return { ...NO_OUTPUT, ...run, stdoutPath: "/run/out", ...shown };
}
