import { expect, test } from "bun:test";
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithVms } from "../support/real-vm.ts";
import { runExecutable } from "../support/run-executable.ts";
import { TestEngine } from "../support/test-engine.ts";
import { eventually } from "../support/test-server.ts";

describeWithVms("the engine over real VMs", () => {
  test("a VM from its making to its end: task, files, workload, stats, stop, delete", async () => {
    await using engine = await TestEngine.start();
    const id = await engine.vm({ profile: "shell", tenant_id: "acme" });
    expect(await engine.task(id, "pwd; id -u; echo it works")).toBe("/workspace\n0\nit works\n");
    const content = crypto.getRandomValues(new Uint8Array(65_536));
    const put = await engine.request("PUT", `/vms/${id}/workspace?path=a/b.bin`, { body: content });
    expect([put.status, put.json]).toEqual([200, { path: "a/b.bin", bytes: 65_536 }]);
    expect((await engine.request("PUT", `/vms/${id}/workspace?path=a/b.bin`, { body: "x" })).status).toBe(
      409,
    );
    const got = await engine.fetch("GET", `/vms/${id}/workspace?path=a/b.bin`);
    expect(await got.bytes()).toEqual(content);
    expect((await engine.get(`/vms/${id}/workspace?path=a/none`)).status).toBe(404);
    const script = "env | cut -d= -f1 | sort | tr '\\n' ' '; exit 3";
    await engine.request("PUT", `/vms/${id}/workspace?path=workloads/w.sh`, { body: script });
    const workload = await engine.post(`/vms/${id}/workloads/run`, { script: "workloads/w.sh" });
    expect(workload.json).toMatchObject({ exit_code: 3, stdout: "HOME PATH PWD ", timed_out: false });
    const slow = "echo begun; sleep 30";
    await engine.request("PUT", `/vms/${id}/workspace?path=workloads/slow.sh`, { body: slow });
    const late = await engine.post(`/vms/${id}/workloads/run`, {
      script: "workloads/slow.sh",
      timeout_seconds: 1,
    });
    expect(late.json).toMatchObject({ exit_code: -1, stdout: "begun\n", timed_out: true });
    expect((await engine.get(`/vms/${id}/health`)).json).toEqual({ status: "idle" });
    const stats = (await engine.get(`/vms/${id}/stats`)).json as Record<string, number>;
    expect(stats["mem_total_mib"]).toBe(512);
    expect(stats["mem_used_mib"]).toBeGreaterThan(1);
    expect((await engine.post(`/vms/${id}/stop`)).json).toEqual({ status: "stopping" });
    expect(engine.vmms()).toEqual([]);
    expect((await engine.post(`/vms/${id}/tasks`, { prompt: "true" })).status).toBe(502);
    expect((await engine.request("DELETE", `/vms/${id}`)).json).toEqual({ status: "stopped", vm_id: id });
    expect((await engine.get("/vms")).json).toEqual([]);
  });

  test("a stream tells the first line while the task still runs, and a client that leaves ends the task", async () => {
    await using engine = await TestEngine.start();
    const id = await engine.vm();
    const gone = new AbortController();
    const body = JSON.stringify({ prompt: "echo first; sleep 600" });
    const headers = { "content-type": "application/json" };
    const path = `/vms/${id}/tasks?stream=1`;
    const response = await engine.fetch("POST", path, { body, headers, signal: gone.signal });
    const { value } = await response.body!.getReader().read();
    expect(JSON.parse(new TextDecoder().decode(value))).toEqual({ type: "progress", text: "first\n" });
    expect((await engine.post(`/vms/${id}/tasks`, { prompt: "true" })).text).toBe("agent busy");
    gone.abort();
    while ((await engine.post(`/vms/${id}/tasks`, { prompt: "true" })).status === 503) await Bun.sleep(50);
    expect(await engine.task(id, "pgrep -fc 'sleep 60[0]' || true")).toBe("0\n");
  });

  test("a forwarded port leads to a server in the guest, also under the next engine", async () => {
    await using engine = await TestEngine.start();
    const id = await engine.vm();
    await engine.task(
      id,
      "echo from the guest >page; nohup python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 &",
    );
    const { json } = await engine.post(`/vms/${id}/forwards`, { guest_port: 8000 });
    const { host_port: port } = json as { host_port: number };
    const page = async () => {
      const response = await fetch(`http://127.0.0.1:${port}/page`).catch(() => null);
      return response === null ? "" : await response.text();
    };
    await eventually("the server in the guest listens", 20_000, async () => (await page()) !== "");
    expect(await Promise.all([page(), page(), page()])).toEqual([
      "from the guest\n",
      "from the guest\n",
      "from the guest\n",
    ]);
    await engine.end("SIGKILL");
    await engine.start();
    expect(await page()).toBe("from the guest\n");
    await engine.request("DELETE", `/vms/${id}`);
    expect(await page()).toBe("");
  });

  test("a VM reaches what its profile lists and nothing else, also under the next engine", async () => {
    await using engine = new TestEngine();
    const profiles = join(engine.home.path, "profiles");
    mkdirSync(join(profiles, "shell"), { recursive: true });
    writeFileSync(join(profiles, "shell", "egress.json"), '{"allow_cidrs": ["127.0.0.1/32"]}');
    engine.extraEnv["IGN_ENGINE_PROFILES"] = profiles;
    await engine.start();
    using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("from the host") });
    // The proxy variables spare loopback, which is the guest's own.
    const get = `curl -s --max-time 20 --noproxy '' http://127.0.0.1:${server.port}/`;
    const [listed, denied] = [await engine.vm(), await engine.vm({ egress_policy: "deny_all" })];
    expect(await engine.task(listed, get)).toBe("from the host");
    expect((await engine.post(`/vms/${denied}/tasks`, { prompt: get })).status).toBe(500);
    const stats = (await engine.get(`/vms/${listed}/stats`)).json as Record<string, number>;
    expect(stats["network_rx_bytes"]).toBeGreaterThan(10);
    await engine.end("SIGKILL");
    await engine.start();
    expect(await engine.task(listed, get)).toBe("from the host");
    expect((await engine.post(`/vms/${denied}/tasks`, { prompt: get })).status).toBe(500);
  });

  test("a guest that is shut down from inside leaves a dead VM with the cause", async () => {
    await using engine = await TestEngine.start();
    const id = await engine.vm();
    const lost = await engine.post(`/vms/${id}/tasks`, { prompt: "echo o > /proc/sysrq-trigger; sleep 60" });
    expect(lost.status).toBe(502);
    const listed = async () => (await engine.get("/vms")).json as Record<string, string>[];
    await eventually(
      "the VM is told as dead",
      20_000,
      async () => (await listed())[0]?.["status"] === "dead",
    );
    expect((await listed())[0]?.["cause"]).toMatch(/^its (?:guest|VMM) /);
  });

  test("SIGHUP reads the tokens again; the socket is for its user only", async () => {
    await using engine = new TestEngine();
    const tokens = join(engine.home.path, "tokens");
    engine.extraEnv["EPHEMERA_API_TOKENS_FILE"] = tokens;
    const statusFor = async (token: string) =>
      (await engine.request("GET", "/vms", { headers: { authorization: `Bearer ${token}` } })).status;
    writeFileSync(tokens, "ann:one");
    await engine.start();
    expect([await statusFor("one"), await statusFor("two")]).toEqual([200, 401]);
    writeFileSync(tokens, "ann:two");
    engine.signal("SIGHUP");
    await eventually("the new token opens", 10_000, async () => (await statusFor("two")) === 200);
    expect(await statusFor("one")).toBe(401);
    expect(statSync(engine.socketPath).mode & 0o077).toBe(0);
  });

  test.each([
    [
      "an address other machines reach without a token",
      { ANVIL_API_ADDR: "0.0.0.0:0" },
      "set EPHEMERA_API_TOKEN",
    ],
    ["a network card", { IGN_MCP_NET: "1" }, "unset it for the engine"],
    ["an unknown variable", { IGN_ENGINE_DIRECTORY: "/x" }, "is not a variable of the engine"],
    ["a token file that is not there", { EPHEMERA_API_TOKENS_FILE: "/none" }, "cannot be read (ENOENT)"],
  ])("%s is refused with status 78", async (_, env, text) => {
    const { status, stderr } = await runExecutable(["daemon"], {
      PATH: process.env["PATH"]!,
      HOME: "/tmp",
      ...env,
    });
    expect(status).toBe(78);
    expect(stderr).toContain(text);
  });
});
