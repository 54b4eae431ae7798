import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { RawClient } from "../support/raw-client.ts";
import { EXECUTABLE_PATH, skipReason, TestHome } from "../support/real-vm.ts";
import { eventually } from "../support/test-server.ts";

/** Arguments for unshare that run the executable with a small file system over one directory, seen by nobody else. */
function withSmallDisk(path: string, options: string, ...args: string[]): string[] {
  const script = 'mount -t tmpfs -o "$1" tmpfs "$2"; shift 2; exec "$@"';
  return ["-Urm", "sh", "-ec", script, "sh", `mode=0700,${options}`, path, EXECUTABLE_PATH, ...args];
}

const canMount = Bun.spawnSync(["unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).exitCode === 0;
const reason = skipReason() ?? (canMount ? null : "user namespaces are not allowed here");

describe.skipIf(reason !== null)(`on a full disk${reason ? ` (${reason})` : ""}`, () => {
  test("a base is not built, the reason is told, and nothing is left of it", async () => {
    using home = new TestHome();
    const store = join(home.path, "store");
    mkdirSync(store);
    const list = ["sh", "-c", '"$0" base build; status=$?; ls -A "$1/snapshots"; exit $status'];
    const mount = withSmallDisk(store, "size=64m").slice(0, -1);
    const child = Bun.spawn(["unshare", ...mount, ...list, EXECUTABLE_PATH, store], {
      env: home.env({ IGN_MCP_STORE: store }),
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [left, stderr] = await Promise.all(
      [child.stdout, child.stderr].map((each) => new Response(each).text()),
    );
    expect(await child.exited).toBe(1);
    expect(stderr).toContain("since the disk of the store is full");
    expect(left).toBe("");
  });

  test("a session is not opened, the reason is told, and the server goes on", async () => {
    using home = new TestHome();
    const args = withSmallDisk(home.runtimePath, "nr_inodes=2");
    mkdirSync(home.runtimePath);
    await using client = new RawClient({ command: "unshare", args, env: home.env() });
    await client.initialize();
    const reply = await client.request("tools/call", { name: "open_session", arguments: {} });
    const { error } = (reply["result"] as { structuredContent: { error: { code: string; message: string } } })
      .structuredContent;
    expect(error.code).toBe("open_failed");
    expect(error.message).toContain("ENOSPC");
    expect(error.message).toContain("set XDG_RUNTIME_DIR");
    expect(await client.request("ping")).toMatchObject({ result: {} });
    client.endInput();
    expect(await client.exited()).toBe(0);
    const lines = client.stderr.trimEnd().split("\n");
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0]!)).toMatchObject({
      event: "open_failed",
      cause: expect.stringContaining("ENOSPC"),
    });
    expect(readdirSync(home.runtimePath)).toEqual([]);
  });

  test("a snapshot is not taken, the engine answers 507, nothing is left, and its VM goes on", async () => {
    using home = new TestHome();
    const [workDir, unix] = [join(home.path, "engine"), join(home.path, "api.sock")];
    mkdirSync(workDir);
    const child = Bun.spawn(["unshare", ...withSmallDisk(workDir, "size=64m", "daemon", "--end-vms")], {
      env: home.env({
        ANVIL_API_ADDR: `unix:${unix}`,
        IGN_ENGINE_DIR: workDir,
        IGN_ENGINE_DISK_FLOOR_MIB: "0",
      }),
      stdio: ["ignore", "ignore", "pipe"],
    });
    const ask = async (method: string, path: string, body?: object) => {
      const headers = { "content-type": "application/json" };
      const init = { method, unix, ...(body && { body: JSON.stringify(body), headers }) };
      const response = await fetch(`http://engine${path}`, init as RequestInit);
      return { status: response.status, json: (await response.json()) as Record<string, unknown> };
    };
    try {
      await eventually("the engine listens", 30_000, () => existsSync(unix));
      const { vm_id } = (await ask("POST", "/vms", {})).json;
      // What the copy needs at most is known before; with less the rest of the disk stays as it is.
      expect(await ask("POST", `/vms/${vm_id}/snapshot`, {})).toMatchObject({
        status: 507,
        json: {
          error: expect.stringMatching(
            /^insufficient disk space: up to \d+ MiB are needed, 6\d MiB are free, and 0 MiB must stay so/,
          ),
        },
      });
      expect((await ask("GET", "/snapshots")).json).toEqual([] as never);
      expect(readdirSync(`/proc/${child.pid}/root${workDir}/snapshots`)).toEqual([]);
      expect((await ask("POST", `/vms/${vm_id}/tasks`, { prompt: "echo up" })).json).toMatchObject({
        output: "up\n",
      });
    } finally {
      child.kill("SIGTERM");
      await child.exited;
    }
  });
});
