import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import type { AgentError } from "../../src/guest/agent-error.ts";
import { newCloneIdentity, tellCloned } from "../../src/guest/clone-identity.ts";
import type { Tunnel } from "../../src/guest/tunnel.ts";
import type { Vm } from "../../src/vm/vm.ts";
import { DirectVms, outputIn, runIn } from "../support/direct-vms.ts";
import {
  ECHO_CLIENTS,
  ECHO_PORT,
  ECHO_SERVER,
  HOLDER,
  inBackground,
  python,
} from "../support/guest-programs.ts";
import { describeWithVms } from "../support/real-vm.ts";
import { rejection } from "../support/rejection.ts";
import { eventually } from "../support/test-server.ts";
import { echo, readAll, sendAll } from "../support/tunnel-ends.ts";

const NEVER = new AbortController().signal;
const MIB = 1_048_576;
const CONCURRENT = 200;

function pattern(bytes: number): Uint8Array {
  return Uint8Array.from({ length: bytes }, (_, at) => at * 31 + (at >> 8));
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Descriptors of the agent in the guest */
async function agentDescriptors(vm: Vm): Promise<number> {
  return Number(await outputIn(vm, "ls /proc/1/fd | wc -l"));
}

async function stateIn(vm: Vm): Promise<string> {
  return (await runIn(vm, "cat /tmp/state")).stdout;
}

describeWithVms("tunnels", () => {
  let vms: DirectVms;
  let vm: Vm;
  let descriptorsBefore: number;

  beforeAll(async () => {
    vms = new DirectVms();
    vm = await vms.claim();
    await inBackground(vm, ECHO_SERVER);
    await vm.serveProxy(echo, NEVER);
    descriptorsBefore = await agentDescriptors(vm);
    await eventually("the echo server listens", 20_000, async () => {
      const { code } = await runIn(vm, `bash -c ': </dev/tcp/127.0.0.1/${ECHO_PORT}'`);
      return code === 0;
    });
  });
  afterAll(() => vms[Symbol.asyncDispose]());

  const noneIsLeft = () =>
    eventually(
      "the agent's descriptors are as before",
      10_000,
      async () => (await agentDescriptors(vm)) === descriptorsBefore,
    );

  test("into the guest carry a MiB each way at once", async () => {
    const tunnel = await vm.connectGuest(ECHO_PORT, NEVER);
    const bytes = pattern(MIB);
    const [, received] = await Promise.all([sendAll(tunnel, bytes), readAll(tunnel)]);
    expect(sha256(received)).toBe(sha256(bytes));
  });

  test("out of the guest carry a MiB each way at once", async () => {
    expect(await outputIn(vm, python(ECHO_CLIENTS, 1, MIB))).toBe("1\n");
  });

  test("are carried 200 at once, and leave nothing", async () => {
    expect(await outputIn(vm, python(ECHO_CLIENTS, CONCURRENT, 10_240))).toBe(`${CONCURRENT}\n`);
    const into = Array.from({ length: CONCURRENT }, async (_, at) => {
      const tunnel = await vm.connectGuest(ECHO_PORT, NEVER);
      const text = `tunnel ${at}`.repeat(100);
      const [, received] = await Promise.all([sendAll(tunnel, text), readAll(tunnel)]);
      return Buffer.from(received).toString() === text;
    });
    expect((await Promise.all(into)).every(Boolean)).toBe(true);
    await noneIsLeft();
  });

  test("end in one direction while the other goes on", async () => {
    const program = `
import socket
s = socket.create_server(("127.0.0.1", 7008))
open("/tmp/ready", "w")
c = s.accept()[0]
c.sendall(b"first"); c.shutdown(socket.SHUT_WR)
got = b""
while (b := c.recv(100)): got += b
open("/tmp/got", "wb").write(got)`;
    await inBackground(vm, program);
    await eventually("it listens", 20_000, async () => (await runIn(vm, "test -e /tmp/ready")).code === 0);
    const tunnel = await vm.connectGuest(7008, NEVER);
    expect(Buffer.from(await readAll(tunnel)).toString()).toBe("first");
    await sendAll(tunnel, "then");
    await eventually("it came", 10_000, async () => (await runIn(vm, "cat /tmp/got")).stdout === "then");
  });

  test("to a port nobody listens on are refused with the reason", async () => {
    const error = await rejection<AgentError>(vm.connectGuest(7999, NEVER));
    expect(error).toMatchObject({ refusal: "connect_failed", errno: "ECONNREFUSED" });
  });

  test("that the host aborts, or whose handler fails, are reset in the guest", async () => {
    const serving = new AbortController();
    await vm.serveProxy(() => Promise.reject(new Error("no")), serving.signal);
    await outputIn(vm, python(HOLDER));
    expect(await stateIn(vm)).toBe("ConnectionResetError");
    await vm.serveProxy(echo, NEVER);
    await noneIsLeft();
  });

  test("whose program is killed in the middle are over for the host, with what was carried", async () => {
    const tunnels: Tunnel[] = [];
    await vm.serveProxy((tunnel) => void tunnels.push(tunnel), NEVER);
    const killed = new AbortController();
    const program = `
import socket
c = socket.create_connection(("127.0.0.1", 3128))
while True: c.sendall(bytes(65536))`;
    const run = rejection<Error>(runIn(vm, python(program), killed.signal));
    await eventually("it connects", 20_000, () => tunnels.length === 1);
    const [tunnel] = tunnels as [Tunnel];
    const reader = tunnel.readable.getReader();
    await reader.read();
    const writer = tunnel.writable.getWriter();
    await writer.write(Buffer.from("never read"));
    killed.abort();
    await run;
    const drained = (async () => {
      while (!(await reader.read()).done);
    })();
    // Bytes it never read make the kernel send a RST.
    expect(await rejection<AgentError>(drained)).toMatchObject({ refusal: "reset", errno: "ECONNRESET" });
    expect(await rejection<AgentError>(writer.closed)).toMatchObject({ refusal: "reset" });
    await vm.serveProxy(echo, NEVER);
    await noneIsLeft();
  });

  test("are reset by a guest that is told that it is a clone, which still listens", async () => {
    const tunnel = await vm.connectGuest(ECHO_PORT, NEVER);
    const reading = rejection<AgentError>(readAll(tunnel));
    await tellCloned(vm.agent, newCloneIdentity());
    expect(await reading).toMatchObject({ refusal: "reset" });
    expect(await outputIn(vm, python(ECHO_CLIENTS, 1, 1024))).toBe("1\n");
    await noneIsLeft();
  });

  test("go on through a checkpoint, are reset in the fork, and work there once it is told to listen", async () => {
    const tunnels: Tunnel[] = [];
    await vm.serveProxy((tunnel) => void tunnels.push(tunnel), NEVER);
    await inBackground(vm, HOLDER);
    await eventually("it connected", 20_000, () => tunnels.length === 1);
    const into = await vm.connectGuest(ECHO_PORT, NEVER);
    const fork = await vms.fork(vm);
    await eventually(
      "the fork's is reset",
      20_000,
      async () => (await stateIn(fork)) === "ConnectionResetError",
    );
    expect((await runIn(fork, "gtwall x")).code).toBe(3);
    await fork.serveProxy(echo, NEVER);
    expect(await outputIn(fork, python(ECHO_CLIENTS, 2, 1024))).toBe("2\n");
    expect(await stateIn(vm)).toBe("open");
    await sendAll(tunnels[0]!, "still here");
    await eventually("the parent's goes on", 10_000, async () => (await stateIn(vm)) === "read still here");
    const [, received] = await Promise.all([sendAll(into, "and back"), readAll(into)]);
    expect(Buffer.from(received).toString()).toBe("and back");
    await vm.serveProxy(echo, NEVER);
    await fork[Symbol.asyncDispose]();
  });

  test("end with their VM, for reader and writer", async () => {
    const short = await vms.claim();
    const outcomes: Promise<AgentError>[] = [];
    await short.serveProxy((tunnel) => {
      outcomes.push(rejection<AgentError>(readAll(tunnel)));
      outcomes.push(rejection<AgentError>(tunnel.writable.getWriter().closed));
    }, NEVER);
    await inBackground(short, HOLDER);
    await eventually("it connected", 20_000, () => outcomes.length === 2);
    await short[Symbol.asyncDispose]();
    for (const error of await Promise.all(outcomes)) expect(error.code).toBe("agent_lost");
  });
});
