import { expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import type { ListenAddress } from "../../../src/config/listen-address.ts";
import { listen } from "../../../src/engine/listener.ts";
import { FakeEngine } from "../../support/fake-engine.ts";

/** What a server answers to these bytes until it closes the connection. */
function exchange(address: ListenAddress, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = "unix" in address ? connect(address.unix) : connect(address.port, address.host);
    let text = "";
    socket.on("data", (data) => {
      text += data.toString();
    });
    socket.on("close", () => resolve(text));
    socket.on("error", reject);
    socket.write(bytes);
  });
}

const head = (method: string, path: string, ...lines: string[]) =>
  [`${method} ${path} HTTP/1.1`, "Host: localhost", "Connection: close", ...lines, "", ""].join("\r\n");

test("over TCP bodies come in pieces, limits hold for them, and addresses are logged", async () => {
  await using engine = await FakeEngine.open();
  const listener = await listen(engine.engine.app, { host: "127.0.0.1", port: 0 });
  try {
    const chunked = head("POST", "/vms", "Transfer-Encoding: chunked", "Content-Type: application/json");
    const made = await exchange(
      listener.address,
      `${chunked}8\r\n{"tenant\r\nc\r\n_id":"acme"}\r\n0\r\n\r\n`,
    );
    expect(made).toStartWith("HTTP/1.1 201");
    expect(made).toContain('"tenant_id":"acme"');
    const untyped = head("POST", "/vms", "Transfer-Encoding: chunked");
    expect(await exchange(listener.address, `${untyped}2\r\n{}\r\n0\r\n\r\n`)).toStartWith("HTTP/1.1 415");
    const large = "x".repeat(1_048_577);
    const sent = `${chunked}${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`;
    expect(await exchange(listener.address, sent)).toStartWith("HTTP/1.1 413");
    const log = (await engine.get("/audit")).json as { remote_addr: string }[];
    expect(log.map((record) => record.remote_addr)).toEqual(["127.0.0.1", "127.0.0.1", "127.0.0.1"]);
  } finally {
    await listener.stop();
  }
});

test("connections that ask for nothing more are closed, and those whose body nobody takes at once", async () => {
  await using engine = await FakeEngine.open({ ANVIL_API_TOKEN: "t" });
  const listener = await listen(engine.engine.app, { host: "127.0.0.1", port: 0 }, 1);
  try {
    const kept = head("GET", "/health", "Authorization: Bearer t").replace("Connection: close\r\n", "");
    expect(await exchange(listener.address, kept)).toStartWith("HTTP/1.1 200");
    const half = head("POST", "/vms", "Content-Length: 9").replace("Connection: close\r\n", "");
    expect(await exchange(listener.address, `${half}{`)).toStartWith("HTTP/1.1 401");
  } finally {
    await listener.stop();
  }
});

test("a socket is for its user only, replaces a dead one, and goes with its engine", async () => {
  await using engine = await FakeEngine.open();
  const unix = engine.directory.join("api.sock");
  const script = `Bun.listen({ unix: ${JSON.stringify(unix)}, socket: { data() {} } }); process.kill(process.pid, "SIGKILL")`;
  await Bun.spawn([process.execPath, "-e", script]).exited;
  expect(statSync(unix).isSocket()).toBe(true);
  const listener = await listen(engine.engine.app, { unix });
  expect(statSync(unix).mode & 0o077).toBe(0);
  expect(await exchange(listener.address, head("GET", "/health"))).toStartWith("HTTP/1.1 200");
  await listener.stop();
  expect(existsSync(unix)).toBe(false);
});

test("a file that is no socket is not replaced", async () => {
  await using engine = await FakeEngine.open();
  const unix = engine.directory.join("precious");
  writeFileSync(unix, "words");
  await expect(listen(engine.engine.app, { unix })).rejects.toThrow("cannot listen");
  expect(readFileSync(unix, "utf8")).toBe("words");
});

test("an address that is taken is refused, and the one who has it goes on", async () => {
  await using engine = await FakeEngine.open();
  const { app } = engine.engine;
  const unix = engine.directory.join("api.sock");
  for (const address of [{ host: "127.0.0.1", port: 0 }, { unix }]) {
    const first = await listen(app, address);
    await expect(listen(app, first.address)).rejects.toThrow("Set ANVIL_API_ADDR to another address");
    expect(await exchange(first.address, head("GET", "/health"))).toStartWith("HTTP/1.1 200");
    await first.stop();
  }
});
