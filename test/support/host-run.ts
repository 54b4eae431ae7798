import { AgentError } from "../../src/guest/agent-error.ts";
import type { ExitReply } from "../../src/guest/agent-protocol.ts";
import type { CommandEnd } from "../../src/guest/output-capture.ts";
import type { RunCommand, RunHandle } from "../../src/guest/run-handle.ts";

/** Runs a command meant for a guest on this machine, with the guest's paths led to where `hostPath` has them. */
export function startHostRun(
  run: RunCommand,
  hostPath: (path: string) => string,
  signal: AbortSignal,
): RunHandle {
  signal.throwIfAborted();
  const command = new TextDecoder()
    .decode(run.command)
    .replaceAll(/(?<![\w.])\/workspace/g, hostPath("/workspace"))
    .replaceAll("/run/ignition-", hostPath("/run-ignition-"));
  const listeners = new Set<() => void>();
  const child = Bun.spawn(["sh", "-c", command], {
    cwd: hostPath(run.cwd ?? "/"),
    stdin: run.stdin ?? "ignore",
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  const killAll = (name: number) => {
    try {
      process.kill(-child.pid, name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  };
  signal.addEventListener("abort", () => killAll(9), { once: true });
  const chunks: Uint8Array[] = [];
  const read = async () => {
    for await (const chunk of child.stdout) {
      chunks.push(chunk);
      for (const listener of listeners) listener();
    }
  };
  const ended = (async (): Promise<CommandEnd> => {
    const [, stderr] = await Promise.all([read(), new Response(child.stderr).bytes()]);
    await child.exited;
    if (signal.aborted) throw new AgentError("aborted", "the run was cancelled and killed");
    return endOf(child.exitCode, Buffer.concat(chunks), stderr);
  })();
  ended.catch(() => undefined);
  return {
    ended,
    latestReport: null,
    heads: () => ({ stdout: Buffer.concat(chunks), stderr: new Uint8Array() }),
    input: null,
    kill: killAll,
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** How a run ended that printed this; without an exit code it was killed. */
export function endOf(exitCode: number | null, stdout: Uint8Array, stderr: Uint8Array): CommandEnd {
  const exit: ExitReply = {
    exit_code: exitCode,
    signal: exitCode === null ? 9 : null,
    timed_out: false,
    killed: false,
    oom_killed: false,
    pids_exhausted: false,
    overlay_full: false,
    duration_us: 1000,
    background: 0,
    stdout_bytes: stdout.byteLength,
    stdout_head_bytes: stdout.byteLength,
    stdout_path: null,
    stdout_spool_complete: true,
    stderr_bytes: stderr.byteLength,
    stderr_head_bytes: stderr.byteLength,
    stderr_path: null,
    stderr_spool_complete: true,
  };
  const stream = (head: Uint8Array) => ({
    head,
    tail: new Uint8Array(),
    totalBytes: head.byteLength,
    path: null,
    isPathWhole: true,
  });
  return { exit, stdout: stream(stdout), stderr: stream(stderr) };
}
