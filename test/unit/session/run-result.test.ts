import { expect, test } from "bun:test";
import { runResult } from "../../../src/session/run-result.ts";
import { commandEnd } from "./fake-vm-source.ts";

test("a command's own status and output are passed on", () => {
  const result = runResult(commandEnd({ exit_code: 3, duration_us: 2500 }, "out", "err"));
  expect(result).toEqual({
    stdout: "out",
    stderr: "err",
    exitCode: 3,
    timedOut: false,
    signal: null,
    oomKilled: false,
    diskFull: false,
    tooManyProcesses: false,
    hasStdoutReplacements: false,
    hasStderrReplacements: false,
    stdoutBytes: 3,
    stderrBytes: 3,
    isStdoutCut: false,
    isStderrCut: false,
    stdoutPath: null,
    stderrPath: null,
    durationMs: 2.5,
  });
});

test("a timeout is status 124, whatever ended the shell", () => {
  expect(runResult(commandEnd({ exit_code: null, signal: 9, timed_out: true }))).toMatchObject({
    exitCode: 124,
    timedOut: true,
    signal: "SIGKILL",
  });
});

test.each([
  [1, "SIGHUP"],
  [6, "SIGABRT"],
  [9, "SIGKILL"],
  [11, "SIGSEGV"],
  [15, "SIGTERM"],
  [29, "SIGIO"],
  [31, "SIGSYS"],
  [34, "SIG34"],
])("signal %d is named %s", (number, name) => {
  const result = runResult(commandEnd({ exit_code: null, signal: number }));
  expect(result).toMatchObject({ exitCode: -number, signal: name });
});

test("a stream whose middle is missing says so, and where all of it is", () => {
  const end = commandEnd({}, "start");
  const tail = new TextEncoder().encode("end");
  const stdout = { ...end.stdout, tail, totalBytes: 1000, path: "/tmp/out", isPathWhole: true };
  const result = runResult({ ...end, stdout });
  expect(result.stdout).toBe("start\n[... 992 bytes omitted; all of it is in /tmp/out ...]\nend");
  expect(result).toMatchObject({ stdoutBytes: 1000, isStdoutCut: true, stdoutPath: "/tmp/out" });
});

test("a stream that is all there is not cut, even when it has a file because it may still grow", () => {
  const end = commandEnd({ background: 1 }, "all");
  const stdout = { ...end.stdout, path: "/tmp/out", isPathWhole: true };
  expect(runResult({ ...end, stdout })).toMatchObject({
    stdout: "all",
    isStdoutCut: false,
    stdoutPath: "/tmp/out",
  });
});
