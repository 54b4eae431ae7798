import { describe, expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import packageJson from "../../package.json" with { type: "json" };
import { descendantsOf } from "../support/processes.ts";
import { RawClient } from "../support/raw-client.ts";
import { describeWithVms, EXECUTABLE_PATH, TestHome } from "../support/real-vm.ts";
import { type Ended, runExecutable } from "../support/run-executable.ts";
import { TemporaryDirectory } from "../support/temporary-directory.ts";

async function runHere(args: string[], extraEnv: Record<string, string> = {}): Promise<Ended> {
  using home = new TestHome();
  return await runExecutable(args, home.env(extraEnv));
}

describeWithVms("the command line", () => {
  test("--version says it on stdout", async () => {
    expect(await runHere(["--version"])).toEqual({
      status: 0,
      stdout: `${packageJson.version}\n`,
      stderr: "",
    });
  });

  test("--help names commands and variables on stdout", async () => {
    const { status, stdout, stderr } = await runHere(["--help"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    for (const word of ["serve", "base", "IGN_MCP_STORE", "IGN_MCP_POOL"]) expect(stdout).toContain(word);
  });

  test.each([[["--nonsense"]], [["nonsense"]], [["base", "nonsense"]], [["base", "rm", "../up"]]])(
    "%p ends with 2, the reason on stderr and nothing on stdout",
    async (args) => {
      const { status, stdout, stderr } = await runHere(args);
      expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
      expect(stderr).toContain(args.at(-1)!);
    },
  );
});

describeWithVms("a variable that is wrong ends the server with 78 and says what is allowed", () => {
  test.each([
    ["IGN_MCP_KERNEL", "relative/vmlinuz", "an absolute path"],
    ["IGN_MCP_ROOTFS", "~/root.ext4", "an absolute path"],
    ["IGN_MCP_STORE", "./store", "an absolute path"],
    ["IGN_MCP_BASE", "../up", "a-z 0-9"],
    ["IGN_MCP_MAX_SESSIONS", "0", "from 1 to 1024"],
    ["IGN_MCP_IDLE_SECS", "-5", "from 1 to 604800"],
    ["IGN_MCP_ACCEL", "warp", "kvm, hvf, tcg"],
    ["IGN_MCP_MEM", "64", "from 128 to 65536"],
    ["IGN_MCP_CPUS", "two", "from 1 to 8"],
    ["IGN_MCP_POOL", "65", "from 0 to 64"],
    ["IGN_MCP_CARRIER", "pigeon", "native, twin"],
    ["IGN_MCP_LOG", "loud", "silent"],
    ["IGN_MCP_EGRESS", "some", "deny_all, allow_all, or profile:"],
  ])("%s=%s", async (name, value, allowed) => {
    const { status, stdout, stderr } = await runHere([], { [name]: value });
    expect({ status, stdout }).toEqual({ status: 78, stdout: "" });
    for (const word of [name, JSON.stringify(value), allowed]) expect(stderr).toContain(word);
  });

  test("so does an egress profile that cannot be used", async () => {
    using directory = new TemporaryDirectory();
    const path = directory.join("egress.json");
    writeFileSync(path, '{"allow_hosts":["example.com"]}');
    const { status, stdout, stderr } = await runHere([], { IGN_MCP_EGRESS: `profile:${path}` });
    expect({ status, stdout }).toEqual({ status: 78, stdout: "" });
    expect(stderr).toContain(path);
    expect(stderr).toContain("allow_hosts is no longer a key; list names in allow_sni");
  });

  test("a misspelt variable is refused with the one that was meant", async () => {
    const { status, stderr } = await runHere([], { IGN_MCP_MEMORY: "512" });
    expect(status).toBe(78);
    expect(stderr).toContain("IGN_MCP_MEMORY");
    expect(stderr).toContain("did you mean IGN_MCP_MEM?");
  });
});

describeWithVms("a server nobody asks for a session", () => {
  test("lists its tools without a file, a socket, a process or a stray line", async () => {
    using home = new TestHome();
    const env = home.env({ TMPDIR: home.path, IGN_MCP_STORE: `${home.path}/store` });
    const before = readdirSync(home.path, { recursive: true });
    await using client = new RawClient({ command: EXECUTABLE_PATH, env, cwd: home.path });
    await client.initialize();
    await client.request("tools/list");
    expect(descendantsOf(client.pid)).toEqual([]);
    expect(await Bun.file("/proc/net/unix").text()).not.toContain(home.path);
    expect(readdirSync(home.path, { recursive: true })).toEqual(before);
    client.endInput();
    expect(await client.exited()).toBe(0);
    expect({ stray: client.strayLines, stderr: client.stderr }).toEqual({ stray: [], stderr: "" });
    expect(readdirSync(home.path, { recursive: true })).toEqual(before);
  });

  describe("is not steered by the directory it starts in", () => {
    test("neither .env nor bunfig.toml there is read", async () => {
      using home = new TestHome();
      await Bun.write(`${home.path}/.env`, "IGN_MCP_POOL=nonsense\n");
      await Bun.write(`${home.path}/bunfig.toml`, 'preload = ["./missing.ts"]\n');
      await using client = new RawClient({ command: EXECUTABLE_PATH, env: home.env(), cwd: home.path });
      await client.initialize();
      client.endInput();
      expect(await client.exited()).toBe(0);
    });
  });
});
