import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithVms, TestHome } from "../support/real-vm.ts";
import { TestServer, type TestSession } from "../support/test-server.ts";

const MIB = 1_048_576;
const ADDON_IN_MEMORY = "memfd:ignition_vsock";

/** What every way of moving bytes must be able to do. */
async function tour(session: TestSession): Promise<void> {
  expect(await session.output("cat", { stdin: "to and fro" })).toBe("to and fro");
  const content = Buffer.alloc(4 * MIB, "0123456789abcdef");
  await session.writeFile("large.bin", content);
  expect(await session.sha256Of("large.bin")).toBe(createHash("sha256").update(content).digest("hex"));
  const numbers = Array.from({ length: 16 }, (_, index) => index);
  const answers = await Promise.all(
    numbers.map((number) => session.run(`head -c 30000 /dev/zero | tr '\\0' ${number % 10}`)),
  );
  expect(answers.map(({ stdout }) => stdout)).toEqual(
    numbers.map((number) => String(number % 10).repeat(30_000)),
  );
  expect(await session.run("echo before; sleep 60", { timeout_s: 1 })).toMatchObject({
    stdout: "before\n",
    timed_out: true,
  });
  await session.reset();
  expect(await session.output("ls -A large.bin 2>/dev/null || echo fresh")).toBe("fresh\n");
  await session.close();
}

function mapsOf(pid: number): string {
  return readFileSync(`/proc/${pid}/maps`, "utf8");
}

describeWithVms("a session over each carrier", () => {
  test.each(["twin", "native"])("%s", async (carrier) => {
    await using server = await TestServer.start({ IGN_MCP_CARRIER: carrier });
    await tour(await server.open());
    expect(mapsOf(server.pid).includes(ADDON_IN_MEMORY)).toBe(carrier === "native");
  });

  test("the addon, by default", async () => {
    await using server = await TestServer.start({ IGN_MCP_POOL: "0" });
    expect(await (await server.open()).output("echo on")).toBe("on\n");
    expect(mapsOf(server.pid)).toContain(ADDON_IN_MEMORY);
  });

  describe("the addon does not need a temporary directory", () => {
    let home: TestHome;
    let mounted: string[];

    beforeAll(() => {
      home = new TestHome();
      mounted = [];
    });
    afterAll(() => {
      for (const path of mounted) Bun.spawnSync(["umount", path]);
      home[Symbol.dispose]();
    });

    /** A directory with a file system of its own, which needs root; another user gets one it cannot write. */
    function hostileDirectory(option: "ro" | "noexec"): string {
      const path = join(home.path, option);
      mkdirSync(path);
      if (Bun.spawnSync(["mount", "-t", "tmpfs", "-o", option, "tmpfs", path]).exitCode === 0) {
        mounted.push(path);
      } else chmodSync(path, option === "ro" ? 0o500 : 0o700);
      return path;
    }

    test.each(["ro", "noexec"] as const)("that is mounted %s", async (option) => {
      const temporaryPath = hostileDirectory(option);
      await using server = await TestServer.start({
        IGN_MCP_CARRIER: "native",
        IGN_MCP_POOL: "0",
        TMPDIR: temporaryPath,
      });
      await tour(await server.open());
      expect(mapsOf(server.pid)).toContain(ADDON_IN_MEMORY);
      expect(readdirSync(temporaryPath)).toEqual([]);
    });
  });
});
