import { expect, test } from "bun:test";
import { runMixedLoad } from "../../bench/mixed-load.ts";
import { describeWithVms } from "../support/real-vm.ts";
import { TestEngine } from "../support/test-engine.ts";

describeWithVms("an engine under mixed load", () => {
  test("answers everything right, loses no post, and has nothing left at the end", async () => {
    await using engine = await TestEngine.start();
    const { times, failures } = await runMixedLoad(engine, { vms: 3, seconds: 10, seed: 1 });
    expect(failures).toEqual([]);
    expect(times.all.map(({ name }) => name)).toEqual([
      "copy in",
      "copy out",
      "delete a VM",
      "delete a snapshot",
      "diff snapshot",
      "full snapshot",
      "restore",
      "task",
      "task that fails",
      "task, streamed",
      "wall post",
      "wall post from the guest",
    ]);
  });
});
