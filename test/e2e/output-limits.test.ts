import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { describeWithVms } from "../support/real-vm.ts";
import { TestServer, type TestSession } from "../support/test-server.ts";

const GIB = 1_073_741_824;
const MIB = 1_048_576;
/** How much a server may grow while a run prints; what it holds of a run is 64 KiB */
const GROWTH_BYTES = 64 * MIB;

function residentBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

describeWithVms("what a run may print", () => {
  let server: TestServer;
  let session: TestSession;

  beforeAll(async () => {
    server = await TestServer.start({ IGN_MCP_POOL: "0" });
    session = await server.open();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test("is shown up to the call's own limit, from nothing to 1 MiB", async () => {
    const command = "head -c 2000000 /dev/zero | tr '\\0' x";
    for (const limit of [0, 1, 1000, MIB]) {
      const result = await session.run(command, { max_output_bytes: limit, timeout_s: 60 });
      expect(result).toMatchObject({ stdout_bytes: 2_000_000, stdout_truncated: true });
      const shown = result.stdout.replace(/\n\[\.\.\. \d+ bytes omitted; all of it is in \S+ \.\.\.\]\n/, "");
      expect(shown.length).toBe(limit);
    }
    const message = await session.refusal("run", { command, max_output_bytes: MIB + 1 });
    expect(message).toContain("max_output_bytes is 1048577. Pass a whole number from 0 to 1048576");
  });

  test("is marked when bytes of it are no text, on the stream where they are", async () => {
    const result = await session.run("printf 'a\\377'; echo fine >&2");
    expect(result).toMatchObject({ stdout: "a\ufffd", stdout_invalid_utf8: true, stderr: "fine\n" });
    expect(result).not.toHaveProperty("stderr_invalid_utf8");
    expect(await session.run("echo ü")).not.toHaveProperty("stdout_invalid_utf8");
  });

  test("may be 1 GiB, in bounded memory here, and a run beside it answers meanwhile", async () => {
    const before = residentBytes(server.pid);
    let hasEnded = false;
    const command = `head -c ${GIB} /dev/zero`;
    const big = session.run(command, { timeout_s: 900 }, { timeoutMs: 900_000, onProgress: () => undefined });
    const ended = big.finally(() => {
      hasEnded = true;
    });
    let most = 0;
    let beside = 0;
    while (!hasEnded) {
      expect(await session.output("echo beside")).toBe("beside\n");
      if (!hasEnded) beside++;
      most = Math.max(most, residentBytes(server.pid));
    }
    expect(await ended).toMatchObject({ exit_code: 0, stdout_bytes: GIB, stdout_truncated: true });
    expect(most - before).toBeLessThan(GROWTH_BYTES);
    expect(beside).toBeGreaterThan(5);
  }, 900_000);
});

/** Empty files until no more can be made, a thousand in each directory */
const TOO_MANY_FILES = `
import os
for directory in range(1000):
    os.mkdir(f"many-{directory}")
    for name in range(1000): os.close(os.open(f"many-{directory}/{name}", os.O_CREAT))
`;

describeWithVms("a run that runs out of something says of what", () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await TestServer.start({ IGN_MCP_POOL: "0" });
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const wants: [string, string, Record<string, unknown>][] = [
    ["memory", "python3 -c 'x = bytearray(2000 << 20)'; tail /dev/zero", { oom_killed: true }],
    ["disk", "dd if=/dev/zero of=/root/full bs=1M", { disk_full: true }],
    [
      "processes",
      "i=0; while [ $i -lt 5000 ]; do sleep 1000 & i=$((i+1)); done; wait",
      { too_many_processes: true },
    ],
  ];

  test.each(wants)("of %s", async (what, command, fields) => {
    const session = await server.open();
    const result = await session.run(command, { timeout_s: 60 });
    expect(result).toMatchObject(fields);
    const others = wants.filter(([other]) => other !== what).flatMap(([, , other]) => Object.keys(other));
    for (const name of others) expect(result).not.toHaveProperty(name);
    expect(result.note).toBeDefined();
    expect(await session.output("echo on")).toBe("on\n");
    await session.close();
  });

  test("of files, which is a full disk too, with room left in it, until some are removed", async () => {
    const session = await server.open();
    await session.writeFile("files.py", TOO_MANY_FILES);
    const result = await session.run("python3 files.py; df --output=iavail,avail --block-size=1M /", {
      timeout_s: 120,
    });
    expect(result).toMatchObject({ disk_full: true, note: expect.stringContaining("remove files") });
    expect(result.stderr).toContain("No space left on device: 'many-");
    const [inodes, mib] = result.stdout.trim().split("\n").at(-1)!.trim().split(/\s+/).map(Number);
    expect(inodes).toBe(0);
    expect(mib).toBeGreaterThan(50);
    for (const name of ["oom_killed", "too_many_processes"]) expect(result).not.toHaveProperty(name);
    expect(await session.run("rm -r many-*")).not.toHaveProperty("disk_full");
    await session.close();
  }, 180_000);

  test("and one that does not says nothing", async () => {
    const session = await server.open();
    const result = await session.run("echo fine");
    for (const name of ["oom_killed", "disk_full", "too_many_processes", "note"])
      expect(result).not.toHaveProperty(name);
  });
});
