import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { LockHeld, lockWithin } from "../../../src/anvil/lock-within.ts";
import { identityOf } from "../../../src/base/process-identity.ts";
import { IdleProcess } from "../../support/idle-process.ts";
import { rejection } from "../../support/rejection.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

test("a lock that another process keeps is refused with its pid", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("file");
  await using other = new IdleProcess();
  writeFileSync(`${path}.lock`, identityOf(other.pid)!);
  const error = await rejection(lockWithin(200, path));
  expect(error).toBeInstanceOf(LockHeld);
  expect(error.message).toBe(`process ${other.pid} has its lock`);
});

test("a lock that is given up in time is taken", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("file");
  const first = await lockWithin(20_000, path);
  const second = lockWithin(20_000, path);
  await first[Symbol.asyncDispose]();
  await using _taken = await second;
});
