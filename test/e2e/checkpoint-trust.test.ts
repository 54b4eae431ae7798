import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { randomId } from "../../src/base/random-id.ts";
import { eventually } from "../support/eventually.ts";
import { checkpoint, ForkingHome, fork, forkRefusal } from "../support/forks.ts";
import { expectNoVms, vmsOf } from "../support/leftovers.ts";
import { describeWithVms } from "../support/real-vm.ts";
import { type Ended, runExecutable } from "../support/run-executable.ts";
import { TestServer, type TestSession } from "../support/test-server.ts";
import { flipBit } from "../support/test-store.ts";

const MAX_CHECKPOINTS = 16;
const MOST_TRIES = 10;

describeWithVms("a checkpoint is a base", () => {
  let home: ForkingHome;
  let server: TestServer;
  let session: TestSession;
  let id: string;

  beforeAll(async () => {
    home = new ForkingHome();
    server = await home.start();
    session = await server.open();
    await session.output("echo kept >/root/file");
    id = (await checkpoint(server, session)).checkpoint_id;
  });
  afterAll(() => home[Symbol.asyncDispose]());

  const base = (...args: string[]): Promise<Ended> =>
    runExecutable(["base", ...args], home.home.env({ IGN_MCP_STORE: home.store.path }));

  test("that outlives its server", async () => {
    const other = await home.start();
    expect(await (await fork(other, id)).output("cat /root/file")).toBe("kept\n");
    await other[Symbol.asyncDispose]();
  });

  test("that is listed with its kind, and sound", async () => {
    const listed = JSON.parse((await base("ls", "--json")).stdout) as Record<string, unknown>[];
    expect(listed.map(({ name, kind, usable }) => ({ name, kind, usable }))).toEqual([
      { name: id, kind: "checkpoint", usable: true },
      { name: "tools-base", kind: "base", usable: true },
    ]);
    expect((await base("verify", id)).status).toBe(0);
    expect((await base("build", id)).stderr).toContain("only a session can make one");
  });

  test.each(["memory.bin", "state.bin"])("that is refused when one bit of %s is flipped", async (name) => {
    const path = home.store.file(name, id);
    const offset = Math.floor(statSync(path).size / 2);
    flipBit(path, offset);
    try {
      const text = await forkRefusal(server, id);
      expect(text).toContain(`fork_failed: no session could be forked: base '${id}' is damaged`);
      expect(text).toContain(`Remove it, and make a new checkpoint: ignition-mcp base rm ${id}`);
      const verified = await base("verify", id);
      expect(verified.status).toBe(1);
      expect(verified.stderr).not.toContain("base build");
    } finally {
      flipBit(path, offset);
    }
    await (await fork(server, id)).close();
  });

  test("that is refused where the machine is another", async () => {
    const other = await home.start({ IGN_MCP_MEM: "256" });
    expect(await forkRefusal(other, id)).toContain("512 MiB of memory, IGN_MCP_MEM asks for 256 MiB");
    expect(other.vmms()).toEqual([]);
    await other[Symbol.asyncDispose]();
  });

  test("whose id leads nowhere else", async () => {
    for (const wrong of [randomId("chk_"), "tools-base", `../snapshots/${id}`, "x".repeat(128)])
      expect(await forkRefusal(server, wrong)).toContain("unknown_checkpoint: there is no checkpoint");
  });

  test("of whose kind a store takes so many and no more", async () => {
    const fillers = Array.from({ length: MAX_CHECKPOINTS - 1 }, () => randomId("chk_"));
    for (const filler of fillers) mkdirSync(join(home.store.path, "snapshots", filler));
    const before = home.snapshots();
    const text = await session.refusal("checkpoint");
    expect(text).toContain(`checkpoint_cap: the store holds ${MAX_CHECKPOINTS} checkpoints`);
    expect(home.snapshots()).toEqual(before);
    for (const filler of fillers) rmSync(join(home.store.path, "snapshots", filler), { recursive: true });
    expect(await session.output("echo on")).toBe("on\n");
  });

  test("that is not made from a base that was damaged meanwhile", async () => {
    flipBit(home.store.file("state.bin"), 1000);
    try {
      const before = home.snapshots();
      const text = await session.refusal("checkpoint");
      expect(text).toContain("checkpoint_failed");
      expect(text).toContain("'tools-base', which this session was cloned from, is damaged");
      expect(home.snapshots()).toEqual(before);
    } finally {
      flipBit(home.store.file("state.bin"), 1000);
    }
    expect(await session.output("echo on")).toBe("on\n");
  });

  test("also when the base the session came from was removed", async () => {
    expect((await base("rm", "tools-base")).status).toBe(0);
    try {
      const orphan = await checkpoint(server, session);
      const forked = await fork(server, orphan.checkpoint_id);
      expect(await forked.output("cat /root/file; python3 -c 'print(6 * 7)'")).toBe("kept\n42\n");
      await forked.close();
      expect((await base("rm", orphan.checkpoint_id)).status).toBe(0);
      expect(await forkRefusal(server, orphan.checkpoint_id)).toContain("unknown_checkpoint");
    } finally {
      home.store.copySharedBase();
    }
  });
});

/** A store in which checkpoints are interrupted. */
class InterruptedHome extends ForkingHome {
  /**
   * Interrupts checkpoints in the making until one did not come about: on a fast disk one may be done before. Each try
   * gets what resolves once there is a draft.
   */
  async interrupt(attempt: (draft: () => Promise<void>) => Promise<void>): Promise<void> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const before = this.snapshots();
      await attempt(() => eventually("the draft", () => this.snapshots().length > before.length));
      const done = this.snapshots().filter((name) => name.startsWith("chk_") && !before.includes(name));
      if (done.length === 0) return;
      for (const id of done) await this.removeCheckpoint(id);
    }
    throw new Error(`each of ${MOST_TRIES} checkpoints was done before it could be interrupted`);
  }
}

describeWithVms("a checkpoint that does not come about", () => {
  test.each(["close", "reset"])("because of a %s leaves nothing in the store", async (tool) => {
    await using home = new InterruptedHome();
    const server = await home.start();
    const before = home.snapshots();
    let isError: boolean | undefined;
    await home.interrupt(async (draft) => {
      const session = await server.open();
      const taking = session.call("checkpoint");
      await draft();
      await session.call(tool);
      isError = (await taking).isError;
    });
    expect(isError).toBe(true);
    expect(home.snapshots()).toEqual(before);
  });

  test("because the client left leaves nothing in the store", async () => {
    await using home = new InterruptedHome();
    const before = home.snapshots();
    await home.interrupt(async (draft) => {
      const server = await home.start();
      const session = await server.open();
      void session.call("checkpoint").catch(() => undefined);
      await draft();
      await server[Symbol.asyncDispose]();
    });
    expect(home.snapshots()).toEqual(before);
  });

  test("because the server was killed is cleared away by the next one's first", async () => {
    await using home = new InterruptedHome();
    const before = home.snapshots();
    await home.interrupt(async (draft) => {
      const server = await TestServer.start({ IGN_MCP_STORE: home.store.path, IGN_MCP_TOOLS: "all" });
      const session = await server.open();
      const vms = vmsOf(server.pid);
      void session.call("checkpoint").catch(() => undefined);
      await draft();
      process.kill(server.pid, "SIGKILL");
      await expectNoVms(server.home, vms);
      rmSync(server.home.path, { recursive: true, force: true });
    });
    const left = home.snapshots().filter((name) => !before.includes(name));
    expect(left).toEqual([expect.stringMatching(/^\.chk_.*\.building$/)]);
    const next = await home.start();
    const { checkpoint_id } = await checkpoint(next, await next.open());
    expect(home.snapshots()).toEqual([...before, checkpoint_id].sort());
    expect(readdirSync(join(home.store.path, "snapshots", checkpoint_id)).sort()).toEqual([
      "manifest.json",
      "memory.bin",
      "state.bin",
      "verified.json",
    ]);
  });
});
