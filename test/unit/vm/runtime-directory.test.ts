import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { identityOf } from "../../../src/base/process-identity.ts";
import { RuntimeDirectory } from "../../../src/vm/runtime-directory.ts";
import type { VmError } from "../../../src/vm/vm-error.ts";
import { deadIdentity, IdleProcess } from "../../support/idle-process.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

const IDENTITY = identityOf(process.pid)!;

/** Why no candidate was usable */
function refusal(...candidates: string[]): VmError {
  try {
    RuntimeDirectory.open(candidates)[Symbol.dispose]();
  } catch (error) {
    return error as VmError;
  }
  throw new Error("a candidate was expected to be refused, and was used");
}

describe("VM directories", () => {
  test("are private, empty, and apart from each other", () => {
    using home = new TemporaryDirectory();
    using runtime = RuntimeDirectory.open([home.join("root")]);
    const [first, second] = [runtime.createVmDirectory(), runtime.createVmDirectory()];
    expect(first).not.toBe(second);
    for (const path of [first, second]) {
      expect(path).toStartWith(`${home.join("root", IDENTITY)}/`);
      expect(readdirSync(path)).toEqual([]);
      expect(statSync(path).mode & 0o777).toBe(0o700);
    }
  });

  test("leave nothing behind, their root included", () => {
    using home = new TemporaryDirectory();
    {
      using runtime = RuntimeDirectory.open([home.join("root")]);
      writeFileSync(`${runtime.createVmDirectory()}/qmp.sock`, "");
    }
    expect(readdirSync(home.path)).toEqual([]);
  });

  test("of one holder survive another's end in the same process", () => {
    using home = new TemporaryDirectory();
    using sessions = RuntimeDirectory.open([home.join("root")]);
    const vmPath = sessions.createVmDirectory();
    {
      using build = RuntimeDirectory.open([home.join("root")]);
      expect(build.createVmDirectory()).not.toBe(vmPath);
    }
    expect(existsSync(vmPath)).toBe(true);
  });

  test("leave other servers' directories alone when they end", async () => {
    using home = new TemporaryDirectory();
    await using other = new IdleProcess();
    mkdirSync(home.join("root"), { mode: 0o700 });
    mkdirSync(home.join("root", other.identity));
    RuntimeDirectory.open([home.join("root")])[Symbol.dispose]();
    expect(readdirSync(home.join("root"))).toEqual([other.identity]);
  });
});

test("what dead servers left is swept; live servers' directories and other names are not", async () => {
  using home = new TemporaryDirectory();
  await using live = new IdleProcess();
  const dead = await deadIdentity();
  mkdirSync(home.join("root"), { mode: 0o700 });
  for (const name of [dead, live.identity, "notes", `${process.pid}-1`]) {
    mkdirSync(home.join("root", name, "1"), { recursive: true });
  }
  using _runtime = RuntimeDirectory.open([home.join("root")]);
  expect(readdirSync(home.join("root")).sort()).toEqual([live.identity, "notes"].sort());
});

describe("a root", () => {
  test("that is open to others is refused, and the next one is used", () => {
    using home = new TemporaryDirectory();
    mkdirSync(home.join("open"));
    chmodSync(home.join("open"), 0o755);
    using runtime = RuntimeDirectory.open([home.join("open"), home.join("good")]);
    expect(runtime.path).toBe(home.join("good", IDENTITY));
    expect(readdirSync(home.join("open"))).toEqual([]);
    expect(refusal(home.join("open")).message).toContain(`${home.join("open")} is open to other users`);
  });

  test("that is a link is refused, wherever it leads", () => {
    using home = new TemporaryDirectory();
    mkdirSync(home.join("target"), { mode: 0o700 });
    symlinkSync(home.join("target"), home.join("link"));
    expect(refusal(home.join("link")).message).toContain("is not a directory");
    expect(existsSync(home.join("target"))).toBe(true);
  });

  test.skipIf(process.getuid?.() !== 0)("of another user is refused", () => {
    using home = new TemporaryDirectory();
    mkdirSync(home.join("theirs"), { mode: 0o700 });
    chownSync(home.join("theirs"), 65_534, 65_534);
    expect(refusal(home.join("theirs")).message).toContain("belongs to another user");
  });

  test("too long for a socket path is refused before it is made", () => {
    using home = new TemporaryDirectory();
    expect(refusal(home.join("x".repeat(60))).message).toContain("is too long for a socket path");
    expect(readdirSync(home.path)).toEqual([]);
  });

  test("that cannot be made is refused with the reason, and all reasons are told", () => {
    using home = new TemporaryDirectory();
    writeFileSync(home.join("file"), "");
    const error = refusal(home.join("file", "sub"), "/proc/ignition");
    expect(error.code).toBe("runtime_dir");
    expect(error.message).toContain(`${home.join("file", "sub")} is not writable (ENOTDIR)`);
    expect(error.message).toContain("/proc/ignition is not writable");
    expect(error.message).toEndWith("Set XDG_RUNTIME_DIR to a writable directory with a short path");
  });
});
