import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { checkpoint, fork } from "../support/forks.ts";
import { describeWithVms, TestHome } from "../support/real-vm.ts";
import { runExecutable } from "../support/run-executable.ts";
import { TestServer, type TestSession } from "../support/test-server.ts";
import { TestStore } from "../support/test-store.ts";

const BUILD_LIMIT_MS = 110_000;
/** The machine itself, as a guest with a user-mode network card sees it */
const HOST_ADDRESS = "10.0.2.2";
/** Virtio device id of a network card */
const NET_DEVICE = "0x0001";

const VIRTIO_IDS = "cat /sys/bus/virtio/devices/*/device";
const FETCH = (port: number) =>
  `curl --silent --show-error --max-time 10 http://${HOST_ADDRESS}:${port}/from-guest`;

describeWithVms("a session without IGN_MCP_NET", () => {
  test("has no network card, and no way out", async () => {
    await using server = await TestServer.start({ IGN_MCP_POOL: "0" });
    using host = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("reached") });
    const session = await server.open();
    expect(await session.output("ls /sys/class/net")).toBe("lo\n");
    const ids = await session.output(VIRTIO_IDS);
    expect(ids).toContain("0x0003");
    expect(ids).not.toContain(NET_DEVICE);
    expect((await session.run(FETCH(host.port!))).exit_code).not.toBe(0);
    expect(
      await session.output(
        "python3 -m http.server -b 127.0.0.1 8000 >/dev/null 2>&1 & curl --retry 40 --retry-connrefused --retry-delay 1 -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8000/",
        { timeout_s: 45 },
      ),
    ).toBe("200");
  });
});

describeWithVms("a session with IGN_MCP_NET", () => {
  let storeHome: TestHome;
  let server: TestServer;
  let session: TestSession;
  let store: TestStore;

  beforeAll(async () => {
    storeHome = new TestHome();
    store = new TestStore(join(storeHome.path, "store"));
    server = await TestServer.start({
      IGN_MCP_STORE: store.path,
      IGN_MCP_NET: "1",
      IGN_MCP_POOL: "0",
      IGN_MCP_TOOLS: "all",
    });
    session = await server.open({ timeoutMs: BUILD_LIMIT_MS });
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    storeHome[Symbol.dispose]();
  });

  test("has a base with a name of its own", () => {
    expect(readdirSync(join(store.path, "snapshots"))).toEqual(["tools-base-net"]);
  });

  test("is what the base commands mean too", async () => {
    const env = storeHome.env({ IGN_MCP_STORE: store.path, IGN_MCP_NET: "1" });
    expect(await runExecutable(["base", "verify"], env)).toMatchObject({ status: 0, stdout: "" });
  });

  test("has one network card with an address", async () => {
    expect(await session.output("ls /sys/class/net")).toBe("eth0\nlo\n");
    expect(await session.output(VIRTIO_IDS)).toContain(NET_DEVICE);
    expect(await session.output("cat /proc/net/fib_trie")).toContain("10.0.2.15");
    expect(await session.output("cat /sys/class/net/eth0/carrier")).toBe("1\n");
  });

  test("reaches a service on the machine", async () => {
    using host = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: (request) => new Response(`host saw ${new URL(request.url).pathname}`),
    });
    expect(await session.output(FETCH(host.port!))).toBe("host saw /from-guest");
  });

  test("is forked with its network, over connections of its own", async () => {
    using host = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("reached") });
    const forked = await fork(server, (await checkpoint(server, session)).checkpoint_id);
    for (const each of [forked, session]) expect(await each.output(FETCH(host.port!))).toBe("reached");
    await forked.close();
  });

  test("says in its tools that there is a network", async () => {
    const { tools } = await server.client.client.listTools();
    const opening = tools.find((tool) => tool.name === "open_session");
    expect(opening?.description).toContain("It has a network.");
    expect(tools.find((tool) => tool.name === "run")?.annotations?.openWorldHint).toBe(true);
  });
});
