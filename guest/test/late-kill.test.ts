import { afterAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { AgentProcess, type } from "./agent-process.ts";
import { endRun, run, startRun } from "./agent-requests.ts";
import { removeTree, writableCgroups } from "./test-cgroup.ts";

const cgroups = writableCgroups();

afterAll(async () => {
  if (cgroups) await removeTree(cgroups);
});

describe.each(cgroups ? [undefined, `${cgroups}/agent`] : [undefined])("with the cgroup %p", (directory) => {
  test("a KILL behind the shell's end reaches what the shell left behind", async () => {
    await using agent = await AgentProcess.open(directory);
    // The agent waits for more output for a moment only: one that is missed is tried again.
    for (;;) {
      const stream = startRun(agent, "sleep 1000 & echo $$ $!");
      const [shell, pid] = (await agent.next(stream)).payload.toString().trim().split(" ");
      while (existsSync(`/proc/${shell}`));
      agent.send(type.kill, stream, { signal: 9 });
      const { end } = await endRun(agent, stream);
      expect(end).toMatchObject({ exit_code: 0, signal: null, killed: false });
      const wasMet = end["background"] === 0;
      const kill = wasMet ? ":" : `kill -9 ${pid}`;
      const gone = await run(agent, `${kill}; while kill -0 ${pid}; do sleep 0.02; done`);
      expect(gone.end).toMatchObject({ timed_out: false });
      if (wasMet) break;
    }
  });
});
