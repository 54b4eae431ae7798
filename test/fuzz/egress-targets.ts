import { deepStrictEqual, ok } from "node:assert/strict";
import { ChunkedDecoder } from "../../src/egress/chunked-decoder.ts";
import { ClientHelloReader, MAX_CLIENT_HELLO_BYTES } from "../../src/egress/client-hello.ts";
import { INTERNAL_NAME, parseName, textOf } from "../../src/egress/destination.ts";
import { EgressError } from "../../src/egress/egress-error.ts";
import { EgressGate } from "../../src/egress/egress-gate.ts";
import { parseEgressProfile } from "../../src/egress/egress-profile.ts";
import { endOfHead, parseHead } from "../../src/egress/http-head.ts";
import { encodeHead, readConnectTarget, readHttpRequest } from "../../src/egress/http-request.ts";
import { serveProxyConnection } from "../../src/egress/serve-proxy-connection.ts";
import { readConnect, readGreeting } from "../../src/egress/socks5.ts";
import type { FuzzTarget } from "./fuzz-target.ts";
import { split } from "./mutate.ts";

/** The same verdict however it is cut, and a name only if it is one. */
export const clientHello: FuzzTarget = {
  name: "client-hello",
  corpusPath: "corpus/client-hello",
  words: ["\x16\x03\x01", "\0\0", "\0\x12\0\0\x0f", "a.example", "\x01\0", "\x03\x03", "\xff\xff"],
  tries: 30_000,
  check(bytes, rng) {
    const whole = new ClientHelloReader().push(bytes);
    const reader = new ClientHelloReader();
    let answer: ReturnType<ClientHelloReader["push"]> = { state: "more" };
    for (const piece of split(bytes, rng)) {
      answer = reader.push(piece);
      if (answer.state !== "more") break;
    }
    deepStrictEqual(answer, whole);
    if (whole.state === "hello" && whole.serverName !== null)
      deepStrictEqual(parseName(whole.serverName), whole.serverName);
    if (whole.state === "more") ok(bytes.byteLength < 6 * MAX_CLIENT_HELLO_BYTES, "too much was taken");
  },
};

/** A message is never longer than what was given, and only its own bytes count. */
export const socks5: FuzzTarget = {
  name: "socks5",
  corpusPath: "corpus/socks5",
  words: ["\x05\x01\0", "\x05\x01\0\x03", "\x05\x01\0\x01", "\x05\x01\0\x04", "\x01\xbb", "a.example"],
  tries: 100_000,
  check(bytes) {
    for (const read of [readGreeting, readConnect]) {
      const answer = read(bytes);
      if (answer.state === "more") ok(bytes.byteLength < 262, "too much was waited for");
      if (answer.state !== "ok") continue;
      ok(answer.length <= bytes.byteLength);
      deepStrictEqual(read(bytes.subarray(0, answer.length)), answer);
      if (answer.value) ok(/^[a-z0-9._:[\]-]+:\d+$/.test(textOf(answer.value)));
    }
  },
};

/** What is taken is written anew in one way, which reads as the same request. */
export const httpRequest: FuzzTarget = {
  name: "http-request",
  corpusPath: "corpus/http-request",
  words: httpWords(),
  tries: 30_000,
  check(bytes) {
    const end = endOfHead(bytes);
    if (end < 0) return;
    refusing(() => {
      const head = parseHead(bytes.subarray(0, end));
      if (head.method === "CONNECT") return void readConnectTarget(head);
      const request = readHttpRequest(head, null);
      const forwarded = encodeHead(request);
      deepStrictEqual(endOfHead(forwarded), forwarded.byteLength);
      const again = readHttpRequest(parseHead(forwarded), request.destination);
      deepStrictEqual(encodeHead(again), forwarded);
      deepStrictEqual(again.framing, request.framing);
    });
  },
};

/** The same data however it is cut, or a refusal however it is cut. */
export const chunkedBody: FuzzTarget = {
  name: "chunked-body",
  corpusPath: "corpus/chunked-body",
  words: ["\r\n", "0\r\n\r\n", "3\r\nabc\r\n", ";x=y", "ffffffff\r\n", "\n", "X: y\r\n"],
  tries: 50_000,
  check(bytes, rng) {
    deepStrictEqual(decodeChunks(split(bytes, rng)), decodeChunks([bytes]));
  },
};

export const egressProfile: FuzzTarget = {
  name: "egress-profile",
  corpusPath: "corpus/egress-profile",
  words: ['"allow_sni":', '"allow_hosts":null', '"*."', '"10.0.0.0/8"', "null", "[]", "{}", '"__proto__":{}'],
  tries: 10_000,
  check(bytes) {
    refusing(() => {
      const { allowSni } = parseEgressProfile(Buffer.from(bytes).toString(), "egress.json");
      for (const rule of allowSni) ok(parseName(rule.replace(/^\*\./, "")) !== null, rule);
    });
  },
};

/** Whatever a guest says, its connection ends once it has ended, and nothing but a listed name is resolved or dialled. */
export const proxyConnection: FuzzTarget = {
  name: "proxy-connection",
  corpusPath: "corpus/proxy-connection",
  words: [...httpWords(), "\x05\x01\0", "\x16\x03\x01"],
  tries: 2000,
  async check(bytes, rng) {
    const failures: unknown[] = [];
    using gate = new EgressGate({
      policy: { kind: "profile", rules: parseEgressProfile('{"allow_sni":["a.example"]}', "egress.json") },
      log: { debug: ignore, info: ignore, warn: ignore, error: ({ err }) => failures.push(err) },
      internal: async () => new Response("inside"),
      resolveName: async (name) => {
        deepStrictEqual(name, "a.example");
        return ["93.184.216.34"];
      },
      dial: async (address) => {
        deepStrictEqual(address, "93.184.216.34");
        return { readable: new Blob(["HTTP/1.1 200 OK\r\n\r\n"]).stream(), writable: new WritableStream() };
      },
    });
    const readable = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const piece of split(bytes, rng)) controller.enqueue(piece);
        controller.close();
      },
    });
    await serveProxyConnection({ readable, writable: new WritableStream() }, gate);
    deepStrictEqual(failures, []);
    deepStrictEqual(gate.counters.open, 0);
  },
};

function httpWords(): string[] {
  return [
    "\r\n",
    "\r\n\r\n",
    "CONNECT a.example:443 HTTP/1.1",
    "GET http://a.example/ HTTP/1.1",
    "Host: a.example\r\n",
    "Content-Length: 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close, x\r\n",
    `http://${INTERNAL_NAME}`,
    "\n ",
    "\0",
  ];
}

function ignore(): void {}

function decodeChunks(pieces: Uint8Array[]): string {
  const decoder = new ChunkedDecoder();
  const found: Uint8Array[] = [];
  try {
    for (const piece of pieces) found.push(...decoder.push(piece).data);
  } catch (error) {
    if (error instanceof EgressError) return error.message;
    throw error;
  }
  return `${Buffer.concat(found).toString("latin1")} ${decoder.isDone}`;
}

/** Runs it; a refusal is as good as an answer. */
function refusing(act: () => void): void {
  try {
    act();
  } catch (error) {
    if (!(error instanceof EgressError)) throw error;
    ok(error.message.length < 100_000 && !/undefined|\[object/.test(error.message), error.message);
  }
}
