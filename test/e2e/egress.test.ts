import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { eventually } from "../support/eventually.ts";
import { checkpoint, ForkingHome, fork } from "../support/forks.ts";
import { describeWithVms } from "../support/real-vm.ts";
import { makeCertificate } from "../support/self-made-certificate.ts";
import { TcpServer } from "../support/tcp-server.ts";
import { TemporaryDirectory } from "../support/temporary-directory.ts";
import { TestServer, type TestSession } from "../support/test-server.ts";

/** Loopback addresses the guest's no_proxy does not name; only the first is listed */
const [LISTED, OTHER] = ["127.0.0.2", "127.0.0.3"];
const certificate = makeCertificate(LISTED, OTHER);

const WHEEL = "greeting-1.0-py3-none-any.whl";
const MAKE_WHEEL = `python3 -c "
import zipfile
with zipfile.ZipFile('${WHEEL}', 'w') as wheel:
    wheel.writestr('greeting.py', 'TEXT = \\'hello\\'')
    info = 'greeting-1.0.dist-info/'
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: greeting\\nVersion: 1.0\\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(info + 'RECORD', '')
"`;

/** A server of the machine on one of its loopback addresses. */
function serve(hostname: string, tls = false) {
  return Bun.serve({
    hostname,
    port: 0,
    ...(tls && { tls: certificate }),
    async fetch(request) {
      const body = await request.bytes();
      return new Response(
        `${request.method} ${new URL(request.url).pathname} with ${body.byteLength} bytes\n`,
      );
    },
  });
}

describeWithVms("a session under an egress profile", () => {
  const directory = new TemporaryDirectory();
  let server: TestServer;
  let session: TestSession;

  beforeAll(async () => {
    const path = directory.join("egress.json");
    writeFileSync(path, JSON.stringify({ allow_cidrs: [`${LISTED}/32`], allow_sni: ["localhost"] }));
    server = await TestServer.start({
      IGN_MCP_EGRESS: `profile:${path}`,
      IGN_MCP_POOL: "0",
      IGN_MCP_TOOLS: "all",
    });
    session = await server.open();
    await session.writeFile("/root/ca.pem", certificate.cert);
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    directory[Symbol.dispose]();
  });

  test("has no network card, and the usual variables name its proxy", async () => {
    expect(await session.output("ls /sys/class/net")).toBe("lo\n");
    expect(await session.output("echo $http_proxy $HTTPS_PROXY $all_proxy")).toBe(
      "http://127.0.0.1:3128 http://127.0.0.1:3128 http://127.0.0.1:3128\n",
    );
  });

  test("reaches a listed server over TLS, and no other", async () => {
    using listed = serve(LISTED, true);
    using other = serve(OTHER, true);
    const fetch = (host: string, port: number) =>
      session.run(`curl -sS --max-time 20 --cacert /root/ca.pem https://${host}:${port}/x`);
    expect(await fetch(LISTED, listed.port!)).toMatchObject({
      exit_code: 0,
      stdout: "GET /x with 0 bytes\n",
    });
    const refused = await fetch(OTHER, other.port!);
    expect(refused).toMatchObject({ stdout: "" });
    expect(refused.stderr).toContain("403");
  });

  test("reaches it by SOCKS5 and by plain http too", async () => {
    using listed = serve(LISTED);
    using other = serve(OTHER);
    const to = (host: string, port: number) => `http://${host}:${port}/y`;
    const socks = "curl -sS --max-time 20 --proxy socks5h://127.0.0.1:3128";
    expect(await session.output(`${socks} ${to(LISTED, listed.port!)}`)).toBe("GET /y with 0 bytes\n");
    expect((await session.run(`${socks} ${to(OTHER, other.port!)}`)).exit_code).toBe(97);
    expect(await session.output(`curl -sS --max-time 20 ${to(LISTED, listed.port!)}`)).toBe(
      "GET /y with 0 bytes\n",
    );
    expect(await session.output(`curl -sS --max-time 20 ${to(OTHER, other.port!)}`)).toStartWith(
      "The egress profile does not list the address of 127.0.0.3:",
    );
  });

  test("does not reach a listed name at an address that is not public", async () => {
    using here = serve("127.0.0.1");
    expect(
      await session.output(`curl -sS --noproxy '' --max-time 20 http://localhost:${here.port}/`),
    ).toStartWith(`The address of localhost:${here.port} is not a public one`);
  });

  test("moves large bodies in both directions", async () => {
    using listed = serve(LISTED);
    const count = await session.output(
      `head -c 20000000 /dev/zero | curl -sS --max-time 60 -T - http://${LISTED}:${listed.port}/up`,
    );
    expect(count).toBe("PUT /up with 20000000 bytes\n");
    using large = Bun.serve({
      hostname: LISTED,
      port: 0,
      fetch: () => new Response(new Uint8Array(20_000_000)),
    });
    expect(await session.output(`curl -sS --max-time 60 http://${LISTED}:${large.port}/ | wc -c`)).toBe(
      "20000000\n",
    );
  });

  test("carries 1,000 connections at once, each with its own bytes", async () => {
    using echo = await TcpServer.start((socket) => socket.pipe(socket), LISTED);
    const script = [
      "import resource, socket",
      "resource.setrlimit(resource.RLIMIT_NOFILE, (2048, 2048))",
      `request = b'CONNECT ${LISTED}:${echo.port} HTTP/1.1\\r\\nHost: ${LISTED}:${echo.port}\\r\\n\\r\\n'`,
      "def connect():",
      "    connection = socket.create_connection(('127.0.0.1', 3128))",
      "    connection.sendall(request)",
      "    return connection",
      "connections = [connect() for _ in range(1000)]",
      "for each in connections: assert b' 200 ' in each.recv(4096)",
      "for at, each in enumerate(connections): each.sendall(b'%04d' % at)",
      "print(all(each.recv(4, socket.MSG_WAITALL) == b'%04d' % at for at, each in enumerate(connections)))",
    ].join("\n");
    expect(await session.output("python3 -", { stdin: script, timeout_s: 90 })).toBe("True\n");
    expect(echo.sockets).toHaveLength(1000);
  });

  test("publishes a package and installs it with pip", async () => {
    using registry = serveRegistry(LISTED);
    const origin = `http://${LISTED}:${registry.port}`;
    await session.output(MAKE_WHEEL);
    await session.output(`curl -fsS --max-time 20 -T ${WHEEL} ${origin}/files/${WHEEL}`);
    const pip = "pip install --quiet --no-cache-dir --target /root/site";
    await session.output(`${pip} --index-url ${origin}/simple --trusted-host ${LISTED} greeting`, {
      timeout_s: 90,
    });
    expect(
      await session.output("PYTHONPATH=/root/site python3 -c 'import greeting; print(greeting.TEXT)'"),
    ).toBe("hello\n");
  });
});

describeWithVms("a way out", () => {
  test("is there again after a reset, and in a fork", async () => {
    using directory = new TemporaryDirectory();
    const path = directory.join("egress.json");
    writeFileSync(path, JSON.stringify({ allow_cidrs: [`${LISTED}/32`] }));
    await using home = new ForkingHome();
    const server = await home.start({ IGN_MCP_EGRESS: `profile:${path}` });
    using listed = serve(LISTED);
    const fetch = `curl -sS --max-time 20 http://${LISTED}:${listed.port}/z`;
    const session = await server.open();
    await session.reset();
    expect(await session.output(fetch)).toBe("GET /z with 0 bytes\n");
    const forked = await fork(server, (await checkpoint(server, session)).checkpoint_id);
    for (const each of [forked, session]) expect(await each.output(fetch)).toBe("GET /z with 0 bytes\n");
  });
});

describeWithVms("the end of a session", () => {
  test("ends its connections, also those whose servers do not read", async () => {
    using directory = new TemporaryDirectory();
    const path = directory.join("egress.json");
    writeFileSync(path, JSON.stringify({ allow_cidrs: [`${LISTED}/32`] }));
    await using server = await TestServer.start({
      IGN_MCP_EGRESS: `profile:${path}`,
      IGN_MCP_POOL: "0",
      IGN_MCP_TOOLS: "all",
    });
    let ended = 0;
    using upstream = await TcpServer.start((socket) => {
      socket.on("close", () => ended++);
      socket.pause().end();
    }, LISTED);
    const session = await server.open();
    const script = [
      "import socket, threading, time",
      `request = b'CONNECT ${LISTED}:${upstream.port} HTTP/1.1\\r\\nHost: ${LISTED}:${upstream.port}\\r\\n\\r\\n'`,
      "sent = [0, 0]",
      "def push(at):",
      "    with socket.create_connection(('127.0.0.1', 3128)) as each:",
      "        each.sendall(request)",
      "        while True: sent[at] += each.send(bytes(65536))",
      "for at in range(2): threading.Thread(target=push, args=(at,)).start()",
      "before = None",
      "while before != sent: before = list(sent); time.sleep(2)",
      "print('stuck', flush=True)",
    ].join("\n");
    await session.writeFile("/root/push.py", script);
    const { run_id } = await session.run("python3 /root/push.py", { background: true });
    for (let out = ""; !out.includes("stuck"); )
      out = (await session.poll(run_id!, { cursor: "0:0", wait_s: 1 })).stdout;
    expect(upstream.sockets).toHaveLength(2);
    await session.close();
    for (const socket of upstream.sockets) socket.resume();
    await eventually("the servers to see the end", () => ended === 2);
  });
});

describeWithVms("an egress profile that changes", () => {
  test("is read for the next session, which fails when it cannot be used", async () => {
    using directory = new TemporaryDirectory();
    const path = directory.join("egress.json");
    writeFileSync(path, "{}");
    await using server = await TestServer.start({ IGN_MCP_EGRESS: `profile:${path}` });
    using listed = serve(LISTED);
    const fetch = `curl -sS --max-time 20 http://${LISTED}:${listed.port}/`;
    const before = await server.open();
    expect(await before.output(fetch)).toContain("does not list");
    writeFileSync(path, JSON.stringify({ allow_hosts: [LISTED] }));
    const { isError, text } = await server.client.call("open_session", {});
    expect({ isError, text }).toEqual({
      isError: true,
      text: expect.stringContaining("allow_hosts is no longer a key"),
    });
    writeFileSync(path, JSON.stringify({ allow_cidrs: [`${LISTED}/32`] }));
    expect(await (await server.open()).output(fetch)).toBe("GET / with 0 bytes\n");
    expect(await before.output(fetch)).toContain("does not list");
  });
});

describeWithVms("a session without IGN_MCP_EGRESS", () => {
  test("has no proxy, and no variable that names one", async () => {
    await using server = await TestServer.start({ IGN_MCP_POOL: "0" });
    const session = await server.open();
    expect(await session.output("env | grep -ci proxy || true")).toBe("0\n");
    expect((await session.run("curl -sS --max-time 20 http://127.0.0.1:3128/")).exit_code).toBe(7);
  });
});

describeWithVms("a session under allow_all", () => {
  test("reaches nothing of the machine itself", async () => {
    await using server = await TestServer.start({ IGN_MCP_EGRESS: "allow_all", IGN_MCP_POOL: "1" });
    using other = serve(OTHER);
    const session = await server.open();
    expect(await session.output(`curl -sS --max-time 20 http://${OTHER}:${other.port}/`)).toContain(
      "is not a public one outside of this machine's networks",
    );
  });
});

/** As much of a package index as publishing and installing ask for. */
function serveRegistry(hostname: string) {
  const files = new Map<string, Blob>();
  const page = `<!DOCTYPE html><html><body><a href="/files/${WHEEL}">${WHEEL}</a></body></html>`;
  return Bun.serve({
    hostname,
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (request.method === "PUT") files.set(pathname, await request.blob());
      if (pathname === "/simple/greeting/")
        return new Response(page, { headers: { "content-type": "text/html" } });
      const file = files.get(pathname);
      return file ? new Response(file) : new Response("there is no such file", { status: 404 });
    },
  });
}
