import { describe, expect, test } from "bun:test";
import type { LogFields, Logger } from "../../../src/base/logger.ts";
import { ClonePool } from "../../../src/vm/clone-pool.ts";
import { eventually } from "../../support/eventually.ts";

const silent = () => undefined;
const LOG: Logger = { debug: silent, info: silent, warn: silent, error: silent };

class PooledVm implements AsyncDisposable {
  readonly #death = Promise.withResolvers<void>();
  isDisposed = false;
  disposalFails = false;

  get died(): Promise<void> {
    return this.#death.promise;
  }

  die(): void {
    this.#death.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.isDisposed = true;
    if (this.disposalFails) throw new Error("it holds on");
  }
}

/** A pool with everything it made; `failures` are how many preparations fail first. */
function openPool(size: number, { failures = 0, gate = Promise.resolve() as Promise<unknown> } = {}) {
  const made: PooledVm[] = [];
  const attempts = { count: 0, atOnce: 0, mostAtOnce: 0 };
  const prepare = async () => {
    attempts.count++;
    attempts.mostAtOnce = Math.max(attempts.mostAtOnce, ++attempts.atOnce);
    await gate;
    attempts.atOnce--;
    if (attempts.count <= failures) throw new Error("QEMU did not start");
    const vm = new PooledVm();
    made.push(vm);
    return vm;
  };
  const waits: unknown[] = [];
  const log = { ...LOG, warn: ({ retryMs }: LogFields) => waits.push(retryMs) };
  const pool = new ClonePool<PooledVm>({ size, prepare, log, firstBackoffMs: 1 });
  return { pool, made, attempts, waits };
}

describe("filling", () => {
  test("goes up to the size, one clone after the other", async () => {
    const { pool, attempts } = openPool(3);
    await using _pool = pool;
    pool.fill();
    pool.fill();
    await eventually("a full pool", () => pool.readyCount === 3);
    await Bun.sleep(1);
    expect(attempts).toEqual({ count: 3, atOnce: 0, mostAtOnce: 1 });
  });

  test("of a pool of size zero makes nothing", async () => {
    const { pool, attempts } = openPool(0);
    await using _pool = pool;
    pool.fill();
    expect(pool.take()).toBeNull();
    expect(attempts.count).toBe(0);
  });

  test("goes on by itself after failures, waiting twice as long each time", async () => {
    const { pool, attempts, waits } = openPool(1, { failures: 4 });
    await using _pool = pool;
    pool.fill();
    await eventually("a full pool", () => pool.readyCount === 1);
    expect(attempts.count).toBe(5);
    expect(waits).toEqual([1, 2, 4, 8]);
  });

  test("waits after a failure, whoever asks meanwhile", async () => {
    const { pool, attempts } = openPool(1, { failures: 1 });
    await using _pool = pool;
    pool.fill();
    await Promise.resolve();
    for (let turn = 0; turn < 20; turn++) {
      await Promise.resolve();
      pool.fill();
    }
    expect(attempts.count).toBe(1);
  });
});

describe("taking", () => {
  test("gives the oldest clone to its new owner, and null when there is none", async () => {
    const { pool, made } = openPool(2);
    await using _pool = pool;
    expect(pool.take()).toBeNull();
    pool.fill();
    await eventually("a full pool", () => pool.readyCount === 2);
    expect(pool.take()).toBe(made[0]!);
    expect(pool.take()).toBe(made[1]!);
    expect(pool.take()).toBeNull();
  });

  test("ends the pool's care: a clone that dies later, or the pool's end, is its owner's affair", async () => {
    const { pool, made, attempts } = openPool(1);
    pool.fill();
    await eventually("a full pool", () => pool.readyCount === 1);
    pool.take()!.die();
    await pool[Symbol.asyncDispose]();
    expect(made[0]!.isDisposed).toBe(false);
    expect(attempts.count).toBe(1);
  });
});

test("a clone that is no longer wanted is ended, and the next one is looked at", async () => {
  const { pool, made } = openPool(3);
  pool.fill();
  await eventually("a full pool", () => pool.readyCount === 3);
  expect(pool.take((vm) => vm === made[1])).toBe(made[1]!);
  expect(pool.take(() => false)).toBeNull();
  await pool[Symbol.asyncDispose]();
  expect(made.map((vm) => vm.isDisposed)).toEqual([true, false, true]);
});

describe("a clone that dies while it waits", () => {
  test.each([false, true])("is disposed of and replaced (its disposal fails: %p)", async (disposalFails) => {
    const { pool, made } = openPool(1);
    await using _pool = pool;
    pool.fill();
    await eventually("a full pool", () => pool.readyCount === 1);
    made[0]!.disposalFails = disposalFails;
    made[0]!.die();
    await eventually("another clone", () => made.length === 2 && pool.readyCount === 1);
    expect(made[0]!.isDisposed).toBe(true);
    expect(pool.take()).toBe(made[1]!);
  });
});

describe("disposing", () => {
  test("ends every clone that waits, and makes no more", async () => {
    const { pool, made, attempts } = openPool(2);
    pool.fill();
    await eventually("a full pool", () => pool.readyCount === 2);
    await pool[Symbol.asyncDispose]();
    expect(made.map((vm) => vm.isDisposed)).toEqual([true, true]);
    pool.fill();
    expect(attempts.count).toBe(2);
    expect(pool.take()).toBeNull();
  });

  test("while one is prepared waits for it and leaves nothing", async () => {
    const gate = Promise.withResolvers<void>();
    const { pool, made } = openPool(2, { gate: gate.promise });
    pool.fill();
    const disposal = pool[Symbol.asyncDispose]();
    gate.resolve();
    await disposal;
    expect(made.map((vm) => vm.isDisposed)).toEqual([true]);
    expect(pool.readyCount).toBe(0);
  });

  test("tells the preparation to stop", async () => {
    const told = Promise.withResolvers<void>();
    const prepare = (signal: AbortSignal) =>
      new Promise<PooledVm>((_, reject) => {
        signal.addEventListener("abort", () => {
          told.resolve();
          reject(signal.reason);
        });
      });
    const pool = new ClonePool({ size: 1, prepare, log: LOG });
    pool.fill();
    await pool[Symbol.asyncDispose]();
    await told.promise;
  });

  test("during a wait after a failure ends the wait", async () => {
    const { pool, attempts } = openPool(1, { failures: 100 });
    pool.fill();
    await eventually("a failure", () => attempts.count === 1);
    await pool[Symbol.asyncDispose]();
    const { count } = attempts;
    await Bun.sleep(5);
    expect(attempts.count).toBe(count);
  });
});
