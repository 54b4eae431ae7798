import { afterAll, beforeAll, expect, test } from "bun:test";
import type { TunnelHandler } from "../../src/guest/serve-tunnels.ts";
import type { Vm } from "../../src/vm/vm.ts";
import { DirectVms, outputIn, runIn } from "../support/direct-vms.ts";
import { describeWithVms } from "../support/real-vm.ts";
import { eventually } from "../support/test-server.ts";
import { echo, sendAll } from "../support/tunnel-ends.ts";

const NEVER = new AbortController().signal;

describeWithVms("the guest's proxy", () => {
  let vms: DirectVms;
  let vm: Vm;

  beforeAll(async () => {
    vms = new DirectVms();
    vm = await vms.claim();
  });
  afterAll(() => vms[Symbol.asyncDispose]());

  test("is what curl and others use by themselves", async () => {
    const requests: string[] = [];
    const proxy: TunnelHandler = async (tunnel) => {
      const { value } = await tunnel.readable.getReader().read();
      requests.push(Buffer.from(value!).toString().split("\r\n")[0]!);
      await sendAll(tunnel, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nproxy\n");
    };
    await vm.serveProxy(proxy, NEVER);
    expect(await outputIn(vm, "curl -sS http://example.test/page")).toBe("proxy\n");
    const fetched = `import urllib.request as u; print(u.urlopen("http://example.test/py").read())`;
    expect(await outputIn(vm, `python3 -c '${fetched}'`)).toContain("proxy");
    expect(requests).toEqual([
      "GET http://example.test/page HTTP/1.1",
      "GET http://example.test/py HTTP/1.1",
    ]);
    const local = await runIn(vm, "curl -sS --max-time 5 http://localhost:7999/");
    expect(local.stderr).toContain("port 7999");
  });

  test("takes gtwall's message to the engine's name, and its refusal back", async () => {
    const posted: string[] = [];
    let status = "201 Created";
    const engine: TunnelHandler = async (tunnel) => {
      const reader = tunnel.readable.getReader();
      let text = "";
      while (!text.endsWith("}")) text += Buffer.from((await reader.read()).value!).toString();
      posted.push(text.split("\r\n")[0]!, text.split("\r\n\r\n")[1]!);
      await sendAll(tunnel, `HTTP/1.1 ${status}\r\n\r\nthe wall is closed`);
    };
    await vm.serveProxy(engine, NEVER);
    expect(await runIn(vm, `gtwall 'done: "x" 끝'`)).toEqual({ stdout: "", stderr: "", code: 0 });
    expect(posted).toEqual([
      "POST http://ignition.internal/townwall/post HTTP/1.1",
      JSON.stringify({ body: 'done: "x" 끝' }),
    ]);
    status = "403 Forbidden";
    expect(await runIn(vm, "gtwall x")).toMatchObject({
      code: 1,
      stderr: "gtwall: the engine refused the message with status 403: the wall is closed\n",
    });
  });

  test("leaves no variables when it ends, and gtwall says that there is no engine", async () => {
    const serving = new AbortController();
    await vm.serveProxy(echo, serving.signal);
    expect((await outputIn(vm, "env | grep -ic proxy")).trim()).toBe("9");
    serving.abort();
    await eventually("it stopped", 10_000, async () => (await runIn(vm, "gtwall x")).code === 3);
    expect((await runIn(vm, "env | grep -ic proxy")).stdout.trim()).toBe("0");
  });
});
