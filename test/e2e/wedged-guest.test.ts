import { expect, test } from "bun:test";
import { join } from "node:path";
import { expectNoLeftovers, stillAlive, vmsOf } from "../support/leftovers.ts";
import type { ProcessInfo } from "../support/processes.ts";
import { RawClient } from "../support/raw-client.ts";
import { describeWithVms, EXECUTABLE_PATH, IMAGE_PATH, TestHome } from "../support/real-vm.ts";
import { loadModule, spinningModule } from "../support/spinning-module.ts";
import { eventually, TestServer, type TestSession } from "../support/test-server.ts";

const SILENT = "the agent in its guest stopped answering";

const spinningFile = () => spinningModule(join(IMAGE_PATH, "initramfs.cpio"));

describeWithVms("a guest that answers nothing", () => {
  type Wedge = (session: TestSession, vmm: ProcessInfo) => Promise<string>;
  const wedges: [string, Wedge][] = [
    [
      "because its CPU spins with interrupts off",
      async (session) => {
        await session.writeFile("/root/spin.ko", spinningFile());
        return loadModule("/root/spin.ko");
      },
    ],
    [
      "because its VMM is stopped",
      async (_, vmm) => {
        process.kill(vmm.pid, "SIGSTOP");
        return "true";
      },
    ],
  ];

  test.concurrent.each(wedges)(
    "%s loses its session at the host's own deadline, and no other session notices",
    async (_, wedge) => {
      await using server = await TestServer.start({ IGN_MCP_POOL: "0" });
      const session = await server.open();
      const [vmm] = server.vmms();
      const other = await server.open();
      const command = await wedge(session, vmm!);
      const wedged = session.call("run", { command, timeout_s: 8 });
      let isOver = false;
      void wedged.finally(() => {
        isOver = true;
      });
      let answers = 0;
      while (!isOver) {
        expect(await other.output("echo still here")).toBe("still here\n");
        answers++;
        await Bun.sleep(200);
      }
      const answer = await wedged;
      expect(answer.isError).toBe(true);
      expect(answer.text).toContain("session_died");
      expect(answer.text).toContain(SILENT);
      expect(answers).toBeGreaterThan(5);
      expect(await session.refusal("run", { command: "true" })).toContain(SILENT);
      await eventually("its VMM is gone", 30_000, () => stillAlive([vmm!]).length === 0);
      expect(await other.output("echo on")).toBe("on\n");
    },
  );

  test("holds up neither its own close nor the server's end", async () => {
    using home = new TestHome();
    await using client = new RawClient({ command: EXECUTABLE_PATH, env: home.env() });
    await client.initialize();
    const call = async (name: string, args: Record<string, unknown> = {}) => {
      const reply = await client.request("tools/call", { name, arguments: args });
      return (reply["result"] as { structuredContent: Record<string, unknown> }).structuredContent;
    };
    const openWedged = async () => {
      const { session_id } = await call("open_session");
      const content_base64 = Buffer.from(spinningFile()).toString("base64");
      await call("write_file", { session_id, path: "/root/spin.ko", content_base64 });
      const wedged = call("run", { session_id, command: loadModule("/root/spin.ko"), timeout_s: 600 });
      // A guest that answers nothing for this long is wedged, not slow.
      const isAnswered = () => call("run", { session_id, command: "true", timeout_s: 600 }).then(() => true);
      while (await Promise.race([isAnswered(), Bun.sleep(10_000).then(() => false)]));
      return { session_id, wedged };
    };
    const first = await openWedged();
    await call("close", { session_id: first.session_id });
    expect(JSON.stringify(await first.wedged)).toContain("it was closed");
    const second = await openWedged();
    const vms = vmsOf(client.pid);
    client.endInput();
    expect(JSON.stringify(await second.wedged)).toContain("the server shut down");
    expect(await client.exited()).toBe(0);
    expect(client.stderr).not.toContain("took too long");
    await expectNoLeftovers(home, vms);
  });
});

describeWithVms("a realtime loop in a guest", () => {
  test("does not starve the agent, which ends it at its timeout", async () => {
    await using server = await TestServer.start({ IGN_MCP_POOL: "0" });
    const session = await server.open();
    const loop = "echo -1 > /proc/sys/kernel/sched_rt_runtime_us; chrt -f 99 sh -c 'while :; do :; done'";
    expect(await session.run(loop, { timeout_s: 1 })).toMatchObject({ timed_out: true, exit_code: 124 });
    expect(await session.output("echo on")).toBe("on\n");
  });
});
