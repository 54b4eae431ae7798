import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { describeFile, findDamage, type SealedFile } from "../../../src/vm/file-seal.ts";
import { eventually } from "../../support/eventually.ts";
import { rejection } from "../../support/rejection.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

/** Hashing looks at the signal first, so a check under this one that resolves has hashed nothing. */
const NO_HASHING = AbortSignal.abort(new Error("hashed"));

class Sealed extends TemporaryDirectory {
  readonly sealPath = this.join("verified.json");
  readonly files: SealedFile[] = ["state", "memory"].map((name) => {
    const content = Buffer.alloc(5000, name);
    const path = this.join(name);
    writeFileSync(path, content);
    return { path, bytes: 5000, sha256: createHash("sha256").update(content).digest("hex") };
  });

  /** Waits until the file system's clock has moved on: on older kernels two writes of one tick bear the same time. */
  async letTimePass(path: string): Promise<void> {
    const { ctimeNs } = statSync(path, { bigint: true });
    const probePath = this.join("probe");
    await eventually("the time of a write is another", () => {
      writeFileSync(probePath, "");
      return statSync(probePath, { bigint: true }).ctimeNs > ctimeNs;
    });
  }

  check(signal?: AbortSignal): Promise<SealedFile | null> {
    return findDamage(this.files, this.sealPath, signal);
  }
}

describe("files that are as they should be", () => {
  test("are hashed once, and not again while nothing touches them", async () => {
    using sealed = new Sealed();
    expect((await rejection(sealed.check(NO_HASHING))).message).toBe("hashed");
    expect(await sealed.check()).toBeNull();
    expect(await sealed.check(NO_HASHING)).toBeNull();
  });

  test("are hashed again after a write, though nothing differs, and then not again", async () => {
    using sealed = new Sealed();
    await sealed.check();
    await sealed.letTimePass(sealed.files[1]!.path);
    writeFileSync(sealed.files[1]!.path, readFileSync(sealed.files[1]!.path));
    expect((await rejection(sealed.check(NO_HASHING))).message).toBe("hashed");
    expect(await sealed.check()).toBeNull();
    expect(await sealed.check(NO_HASHING)).toBeNull();
  });

  test.each(["", "{", "7", "null", "[]"])("are hashed when the seal is %p", async (text) => {
    using sealed = new Sealed();
    writeFileSync(sealed.sealPath, text);
    expect((await rejection(sealed.check(NO_HASHING))).message).toBe("hashed");
    expect(await sealed.check()).toBeNull();
  });

  test("can lie where no seal can be kept", async () => {
    using sealed = new Sealed();
    expect(await findDamage(sealed.files, "/sys/verified.json")).toBeNull();
  });
});

describe("damage", () => {
  test("of one byte is found, though size and time of modification are as before", async () => {
    using sealed = new Sealed();
    const damaged = sealed.files[1]!;
    utimesSync(damaged.path, 1, 1);
    await sealed.check();
    await sealed.letTimePass(damaged.path);
    const content = readFileSync(damaged.path);
    content[2500]! ^= 1;
    writeFileSync(damaged.path, content);
    utimesSync(damaged.path, 1, 1);
    expect(await sealed.check()).toBe(damaged);
    expect(await sealed.check()).toBe(damaged);
  });

  test("of a shorter file is found without hashing it", async () => {
    using sealed = new Sealed();
    await sealed.check();
    truncateSync(sealed.files[0]!.path, 4999);
    expect(await sealed.check(NO_HASHING)).toBe(sealed.files[0]!);
  });

  test("of a file that is gone is found", async () => {
    using sealed = new Sealed();
    await sealed.check();
    rmSync(sealed.files[1]!.path);
    expect(await sealed.check()).toBe(sealed.files[1]!);
  });

  test("of a file that was replaced is found", async () => {
    using sealed = new Sealed();
    await sealed.check();
    rmSync(sealed.files[0]!.path);
    writeFileSync(sealed.files[0]!.path, Buffer.alloc(5000, "other"));
    expect(await sealed.check()).toBe(sealed.files[0]!);
  });

  test("is also a file that no longer is what is expected of it", async () => {
    using sealed = new Sealed();
    await sealed.check();
    const expected = { ...sealed.files[0]!, sha256: "0".repeat(64) };
    expect(await findDamage([expected], sealed.sealPath)).toBe(expected);
  });

  test("keeps no seal", async () => {
    using sealed = new Sealed();
    const wrong = { ...sealed.files[0]!, sha256: "0".repeat(64) };
    mkdirSync(sealed.join("sub"));
    expect(await findDamage([wrong], sealed.join("sub", "seal"))).toBe(wrong);
    expect(() => readFileSync(sealed.join("sub", "seal"))).toThrow("ENOENT");
  });
});

describe("the description of a new file", () => {
  test("is its size and hash", async () => {
    using sealed = new Sealed();
    const [{ path, bytes, sha256 }] = sealed.files as [SealedFile];
    expect(await describeFile(path)).toEqual({ bytes, sha256 });
  });

  test("does not wait for the disk when it is given up, and leaves it nothing to do", async () => {
    using sealed = new Sealed();
    const { path } = sealed.files[0]!;
    const syncing = Promise.withResolvers<void>();
    const disk = Promise.withResolvers<void>();
    const opened = await open(path, "r+");
    const closed = Promise.withResolvers<void>();
    const slow = {
      sync: () => {
        syncing.resolve();
        return disk.promise;
      },
      truncate: () => opened.truncate(0),
      close: () => opened.close().finally(closed.resolve),
    };
    const caller = new AbortController();
    const description = rejection(describeFile(path, caller.signal, async () => slow));
    await syncing.promise;
    caller.abort(new Error("given up"));
    expect((await description).message).toBe("given up");
    await eventually("it is empty", () => statSync(path).size === 0);
    disk.resolve();
    await closed.promise;
  });
});
