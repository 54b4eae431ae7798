import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { FakeEngine } from "../../support/fake-engine.ts";
import { startSilentRun } from "../../support/silent-run.ts";

test("an engine with silent machines answers tasks and workloads and runs none of them", async () => {
  await using engine = await FakeEngine.open({}, startSilentRun);
  const id = await engine.vm();
  const mark = engine.directory.join("ran");
  const task = await engine.post(`/vms/${id}/tasks`, { prompt: `touch ${mark}` });
  expect([task.status, task.json]).toEqual([200, { output: "" }]);
  const path = `/vms/${id}/workspace?path=workloads/w.sh&overwrite=true`;
  await engine.request("PUT", path, { body: `touch ${mark}` });
  const workload = await engine.post(`/vms/${id}/workloads/run`, { script: "workloads/w.sh" });
  expect(workload.json).toMatchObject({ exit_code: 0, stdout: "" });
  expect(existsSync(mark)).toBe(false);
});
