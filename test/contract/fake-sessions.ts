import { SessionError } from "../../src/session/session-error.ts";
import type {
  CallContext,
  OpenedSession,
  RunRequest,
  RunResult,
  SessionService,
} from "../../src/session/session-service.ts";

/**
 * Sessions without VMs that keep the contract: files in a map, and commands that do what a test needs:
 * `echo TEXT`, `where`, `stdin`, `cat PATH`, `size PATH`, `big BYTES`, `killed`, `hang` (until cancelled), `progress`,
 * `print` (a stray console.log), `bug`.
 */
export class FakeSessions implements SessionService {
  readonly #files = new Map<string, Map<string, Uint8Array>>();
  readonly #disposal = new AbortController();
  #opened = 0;

  async open(call: CallContext): Promise<OpenedSession> {
    call.progress?.("cloning base");
    this.#opened += 1;
    const sessionId = `ses_${this.#opened}`;
    this.#files.set(sessionId, new Map());
    return { sessionId };
  }

  async run(sessionId: string, request: RunRequest, call: CallContext): Promise<RunResult> {
    const files = this.#session(sessionId);
    const [verb, ...rest] = request.command.split(" ");
    const argument = rest.join(" ");
    switch (verb) {
      case "echo":
        return result({ stdout: `${argument}\n` });
      case "where":
        return result({ stdout: JSON.stringify({ cwd: request.cwd, timeoutMs: request.timeoutMs }) });
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
      case "bug":
        throw new TypeError("secret detail of a bug");
      default:
        return result({ stderr: `sh: ${verb}: not found\n`, exitCode: 127 });
    }
  }

  async writeFile(sessionId: string, path: string, content: Uint8Array): Promise<void> {
    this.#session(sessionId).set(path, content);
  }

  async reset(sessionId: string): Promise<void> {
    this.#session(sessionId).clear();
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

function result(shown: Partial<RunResult>): RunResult {
  const whole = {
    stdout: "",
    stderr: "",
    exitCode: 0,
    timedOut: false,
    signal: null,
    isStdoutCut: false,
    isStderrCut: false,
    stdoutPath: null,
    stderrPath: null,
    durationMs: 0.5,
  };
  const merged = { ...whole, ...shown };
  return {
    ...merged,
    stdoutBytes: shown.stdoutBytes ?? merged.stdout.length,
    stderrBytes: shown.stderrBytes ?? merged.stderr.length,
  };
}
