import { expect, test } from "bun:test";
import { createSocket } from "node:dgram";
import { readdirSync, readlinkSync } from "node:fs";
import { Places } from "../../../src/base/places.ts";
import { ALLOW_ALL, type EgressPolicy } from "../../../src/egress/egress-policy.ts";
import { parseEgressProfile } from "../../../src/egress/egress-profile.ts";
import { parseCidr } from "../../../src/egress/ip-address.ts";
import { nameResolver } from "../../../src/egress/resolve-name.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeDns } from "../../support/fake-dns.ts";
import { GuestEnd, PUBLIC, socksTunnel, TestGate, toLoopback } from "../../support/proxied-guest.ts";
import { TcpServer } from "../../support/tcp-server.ts";

const FIRST_LINE = /^[^\r]*/;

async function connect(gate: TestGate, target: string): Promise<string> {
  const guest = new GuestEnd(gate);
  await guest.send(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  await guest.end();
  const answer = FIRST_LINE.exec(await guest.rest())![0];
  await guest.served;
  return answer;
}

/** Sockets this process has open. */
function sockets(): number {
  const targets = readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      // It was that of the listing.
      return "";
    }
  });
  return targets.filter((target) => target.startsWith("socket:")).length;
}

function profile(rules: object): EgressPolicy {
  return { kind: "profile", rules: parseEgressProfile(JSON.stringify(rules), "test") };
}

test("a name that turns to a private address is dialled as it was checked, then refused", async () => {
  using dns = await FakeDns.start([PUBLIC], ["127.0.0.1"]);
  using target = await TcpServer.start((socket) => socket.end());
  const dialled: string[] = [];
  using gate = new TestGate({
    policy: ALLOW_ALL,
    resolveName: nameResolver([dns.address]),
    dial: toLoopback(dialled),
  });
  const to = `rebind.example:${target.port}`;
  expect(await connect(gate, to)).toStartWith("HTTP/1.1 200 ");
  expect(dns.asked).toEqual(["rebind.example"]);
  expect(dialled).toEqual([PUBLIC]);
  expect(await connect(gate, to)).toBe("HTTP/1.1 403 Forbidden");
  expect(dns.asked).toHaveLength(2);
  expect(dialled).toEqual([PUBLIC]);
  expect(gate.counters.refused.get("address_not_public")).toBe(1);
});

test("of several addresses only those that are allowed are dialled, one after another", async () => {
  using dns = await FakeDns.start(["127.0.0.1", "192.168.0.1", PUBLIC, "1.1.1.1"]);
  const dialled: string[] = [];
  using gate = new TestGate({
    policy: ALLOW_ALL,
    resolveName: nameResolver([dns.address]),
    dial: async (address) => {
      dialled.push(address);
      throw new Error("refused");
    },
  });
  expect(await connect(gate, "many.example:443")).toBe("HTTP/1.1 502 Bad Gateway");
  expect(dialled.sort()).toEqual(["1.1.1.1", PUBLIC]);
  expect(gate.counters.refused.get("unreachable")).toBe(1);
});

test("a name that is not listed is not asked about", async () => {
  using dns = await FakeDns.start([PUBLIC]);
  using gate = new TestGate({
    policy: profile({ allow_sni: ["a.example"] }),
    resolveName: nameResolver([dns.address]),
  });
  expect(await connect(gate, "secret.other.example:443")).toBe("HTTP/1.1 403 Forbidden");
  expect(dns.asked).toEqual([]);
});

test("a name without an address is told as such", async () => {
  using dns = await FakeDns.start([]);
  using gate = new TestGate({ policy: ALLOW_ALL, resolveName: nameResolver([dns.address]) });
  expect(await connect(gate, "none.example:443")).toBe("HTTP/1.1 502 Bad Gateway");
  expect(gate.counters.refused.get("unresolved")).toBe(1);
});

test("the machine's own resolver is asked when the profile names none", async () => {
  const found = await nameResolver([])("localhost", new AbortController().signal);
  expect(found).toContain("127.0.0.1");
});

test.each(["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "10.0.0.1", "localhost"])(
  "%s is refused even under allow_all",
  async (host) => {
    using target = await TcpServer.start((socket) => socket.end());
    const dialled: string[] = [];
    using gate = new TestGate({
      policy: ALLOW_ALL,
      resolveName: nameResolver([]),
      dial: toLoopback(dialled),
    });
    expect(await connect(gate, `${host}:${target.port}`)).toBe("HTTP/1.1 403 Forbidden");
    expect(dialled).toEqual([]);
  },
);

test("a public address of the machine itself is refused unless it is listed", async () => {
  using target = await TcpServer.start((socket) => socket.end());
  const ownNetworks = () => [parseCidr(`${PUBLIC}/32`)!];
  using gate = new TestGate({ policy: ALLOW_ALL, ownNetworks });
  expect(await connect(gate, `me.example:${target.port}`)).toBe("HTTP/1.1 403 Forbidden");
  using listing = new TestGate({ policy: profile({ allow_cidrs: [`${PUBLIC}/32`] }), ownNetworks });
  expect(await connect(listing, `me.example:${target.port}`)).toStartWith("HTTP/1.1 200 ");
});

test("an address that is listed is reached, and nothing beside it", async () => {
  using target = await TcpServer.start((socket) => socket.end());
  using gate = new TestGate({ policy: profile({ allow_cidrs: ["127.0.0.1/32"] }) });
  expect(await connect(gate, `127.0.0.1:${target.port}`)).toStartWith("HTTP/1.1 200 ");
  expect(await connect(gate, `127.0.0.2:${target.port}`)).toBe("HTTP/1.1 403 Forbidden");
  expect(await connect(gate, `${PUBLIC}:${target.port}`)).toBe("HTTP/1.1 403 Forbidden");
  expect(gate.counters.refused.get("address_not_listed")).toBe(2);
});

test("of more addresses than are dialled, one that is listed counts wherever it stands", async () => {
  const many = Array.from({ length: 40 }, (_, at) => `10.0.0.${at}`);
  using target = await TcpServer.start((socket) => socket.end());
  const dialled: string[] = [];
  using gate = new TestGate({
    policy: profile({ allow_cidrs: ["10.1.0.0/16"] }),
    resolveName: async () => [...many, "10.1.0.1"],
    dial: toLoopback(dialled),
  });
  expect(await connect(gate, `many.example:${target.port}`)).toStartWith("HTTP/1.1 200 ");
  expect(dialled).toEqual(["10.1.0.1"]);
});

test("a gate asks about so many names at once, and the others wait for their turn", async () => {
  let [asking, most, asked] = [0, 0, 0];
  const waiting: (() => void)[] = [];
  using gate = new TestGate({
    policy: ALLOW_ALL,
    resolveName: async () => {
      most = Math.max(most, ++asking);
      asked++;
      await new Promise<void>((resolve) => waiting.push(resolve));
      asking--;
      return ["127.0.0.1"];
    },
  });
  const answers = Array.from({ length: 100 }, (_, at) => connect(gate, `a${at}.example:443`));
  await eventually("the first names to be asked about", () => asking === 32);
  while (asked < 100 || asking > 0) {
    waiting.shift()?.();
    await Bun.sleep(0);
  }
  for (const answer of await Promise.all(answers)) expect(answer).toBe("HTTP/1.1 403 Forbidden");
  expect(most).toBe(32);
});

test("lookups that are given up leave no socket", async () => {
  const silent = createSocket("udp4");
  await new Promise<void>((resolve) => silent.bind(0, "127.0.0.1", resolve));
  const resolve = nameResolver([`127.0.0.1:${silent.address().port}`]);
  const before = sockets();
  const giveUp = new AbortController();
  const lookups = Array.from({ length: 20 }, (_, at) => resolve(`a${at}.example`, giveUp.signal));
  await eventually("the lookups to begin", () => sockets() >= before + 20);
  giveUp.abort(new Error("late"));
  for (const result of await Promise.allSettled(lookups)) expect(result.status).toBe("rejected");
  await eventually("their sockets to be closed", () => sockets() === before);
  silent.close();
});

test("all gates share the connections of the process", async () => {
  using target = await TcpServer.start((socket) => socket.resume());
  const shared = { connections: new Places(10), lookups: new Places(10) };
  using one = new TestGate({ policy: ALLOW_ALL, shared });
  using two = new TestGate({ policy: ALLOW_ALL, shared });
  const open = (gate: TestGate) => socksTunnel(gate, target.port);
  const guests = [];
  for (let at = 0; at < 5; at++) guests.push(await open(one), await open(two));
  await new GuestEnd(one).served;
  await new GuestEnd(two).served;
  for (const gate of [one, two]) expect(gate.counters.refused.get("too_many_connections")).toBe(1);
  one[Symbol.dispose]();
  await Promise.all(guests.filter((_, at) => at % 2 === 0).map((guest) => guest.served));
  await open(two);
  expect(two.counters.open).toBe(6);
});

test("a resolver or a server that never answers ends the wait", async () => {
  const never = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const limits = { connectMs: 50 };
  using deaf = new TestGate({ policy: ALLOW_ALL, limits, resolveName: (_, signal) => never(signal) });
  using mute = new TestGate({ policy: ALLOW_ALL, limits, dial: (_address, _port, signal) => never(signal) });
  for (const gate of [deaf, mute]) {
    expect(await connect(gate, "slow.example:443")).toBe("HTTP/1.1 504 Gateway Timeout");
    expect(gate.counters.refused.get("connect_timeout")).toBe(1);
  }
});
