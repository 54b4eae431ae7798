import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { randomId } from "../../../src/base/random-id.ts";
import { CheckpointDraft, isCheckpointId, MAX_CHECKPOINTS } from "../../../src/vm/checkpoint-store.ts";
import type { VmError } from "../../../src/vm/vm-error.ts";
import { rejection } from "../../support/rejection.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

const NEVER = new AbortController().signal;

test("only what the store gives out is a checkpoint's id", async () => {
  using snapshots = new TemporaryDirectory();
  await using draft = await CheckpointDraft.create(snapshots.path, NEVER);
  expect(isCheckpointId(draft.id)).toBe(true);
  for (const text of ["tools-base", "chk_", `${draft.id}x`, `../${draft.id}`, draft.id.toUpperCase(), ""])
    expect(isCheckpointId(text)).toBe(false);
});

test("a draft is no base until it is published, and is gone when it is not", async () => {
  using snapshots = new TemporaryDirectory();
  {
    await using draft = await CheckpointDraft.create(snapshots.path, NEVER);
    writeFileSync(draft.files.statePath, "state");
    expect(readdirSync(snapshots.path)).toEqual([expect.stringMatching(/^\.chk_.*\.building$/)]);
  }
  expect(readdirSync(snapshots.path)).toBeEmpty();
  await using draft = await CheckpointDraft.create(snapshots.path, NEVER);
  writeFileSync(draft.files.statePath, "state");
  const published = await draft.publish();
  expect(published.dir).toBe(snapshots.join(draft.id));
  expect(await Bun.file(published.statePath).text()).toBe("state");
});

test("the store takes so many and no more, those in the making included", async () => {
  using snapshots = new TemporaryDirectory();
  mkdirSync(snapshots.join("tools-base"));
  for (let i = 0; i < MAX_CHECKPOINTS - 1; i++) mkdirSync(snapshots.join(randomId("chk_")));
  await using _last = await CheckpointDraft.create(snapshots.path, NEVER);
  const before = readdirSync(snapshots.path);
  const error = await rejection<VmError>(CheckpointDraft.create(snapshots.path, NEVER));
  expect(error.code).toBe("checkpoint_cap");
  expect(error.message).toContain(`${MAX_CHECKPOINTS} checkpoints`);
  expect(error.message).toContain("ignition-mcp base rm");
  expect(readdirSync(snapshots.path)).toEqual(before);
});

test("of two that want the last room one gets it", async () => {
  using snapshots = new TemporaryDirectory();
  for (let i = 0; i < MAX_CHECKPOINTS - 1; i++) mkdirSync(snapshots.join(randomId("chk_")));
  const both = [1, 2].map(() => CheckpointDraft.create(snapshots.path, NEVER));
  const ends = await Promise.allSettled(both);
  expect(ends.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect(readdirSync(snapshots.path)).toHaveLength(MAX_CHECKPOINTS);
});

test("what a dead server left unfinished goes, and what a living one makes stays", async () => {
  using snapshots = new TemporaryDirectory();
  const dead = snapshots.join(`.${randomId("chk_")}.999999999-1.building`);
  mkdirSync(dead);
  writeFileSync(`${dead}/memory.bin`, "half");
  await using first = await CheckpointDraft.create(snapshots.path, NEVER);
  expect(existsSync(dead)).toBe(false);
  await using _second = await CheckpointDraft.create(snapshots.path, NEVER);
  expect(existsSync(first.files.dir)).toBe(true);
});
