import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { AgentProcess, type } from "./agent-process.ts";
import { endRun, parse, run, startRun } from "./agent-requests.ts";

/** Skips the output itself. */
async function nextReport(agent: AgentProcess, stream: number) {
  for (;;) {
    const frame = await agent.next(stream);
    if (frame.type === type.exit) throw new Error(`the run ended first: ${frame.payload}`);
    if (frame.type === type.report) return parse(frame);
  }
}

test("with a spool the files are known at once, before any output", async () => {
  await using agent = await AgentProcess.open();
  const stream = startRun(agent, "read x; echo $x; echo oops >&2", {
    stdin: "",
    spool: true,
    reportMs: 60_000,
  });
  const report = await nextReport(agent, stream);
  expect(report).toEqual({
    stdout_bytes: 0,
    stderr_bytes: 0,
    last_line: "",
    stdout_path: expect.stringMatching(/\/stdout$/),
    stderr_path: expect.stringMatching(/\/stderr$/),
  });
  agent.send(type.stdin, stream, Buffer.from("hello\n"));
  const { stdout, reports, end } = await endRun(agent, stream);
  expect(stdout.toString()).toBe("hello\n");
  expect(reports).toEqual([]);
  expect(end).toMatchObject({
    stdout_path: report["stdout_path"],
    stdout_spool_complete: true,
    stderr_path: report["stderr_path"],
    stderr_spool_complete: true,
  });
  expect(readFileSync(String(end["stdout_path"]), "latin1")).toBe("hello\n");
  expect(readFileSync(String(end["stderr_path"]), "latin1")).toBe("oops\n");
});

test("a run that is over at once still tells its files before it ends", async () => {
  await using agent = await AgentProcess.open();
  for (let round = 0; round < 20; round++) {
    const { reports, end } = await run(agent, ":", { spool: true, reportMs: 1000 });
    expect(reports[0]).toMatchObject({ stdout_path: end["stdout_path"], stderr_path: end["stderr_path"] });
  }
});

test("reports come when output has grown, with the last line of either stream", async () => {
  await using agent = await AgentProcess.open();
  const stream = startRun(agent, "while read x; do echo $x; echo $x >&2; done", { stdin: "", reportMs: 50 });
  for (const [round, word] of ["one", "two", "three"].entries()) {
    agent.send(type.stdin, stream, Buffer.from(`${word}\n`));
    const bytes = "one\ntwo\nthree\n".indexOf(word) + word.length + 1;
    for (;;) {
      const report = await nextReport(agent, stream);
      expect(report).toMatchObject({ last_line: word, stdout_path: null, stderr_path: null });
      if (report["stderr_bytes"] === bytes && report["stdout_bytes"] === bytes) break;
      expect(round).toBeLessThan(3);
    }
  }
  agent.send(type.stdinEof, stream, Buffer.alloc(0));
  expect((await endRun(agent, stream)).reports).toEqual([]);
});

test("reports come no sooner than asked for, and none when none were asked for", async () => {
  await using agent = await AgentProcess.open();
  const ticking = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i; sleep 0.03; done";
  const rare = startRun(agent, ticking, { reportMs: 60_000 });
  const never = startRun(agent, ticking, { spool: true });
  expect((await endRun(agent, rare)).reports).toHaveLength(1);
  const { reports, end } = await endRun(agent, never);
  expect(reports).toEqual([]);
  expect(readFileSync(String(end["stdout_path"]), "latin1")).toEndWith("11\n12\n");
});
