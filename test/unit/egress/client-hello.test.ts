import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  ClientHelloReader,
  MAX_CLIENT_HELLO_BYTES,
  mayBeClientHello,
} from "../../../src/egress/client-hello.ts";
import { clientHello, extension, record, serverNameExtension, sized } from "../../support/client-hello.ts";

const HANDSHAKE = 22;
const ENCRYPTED_CLIENT_HELLO = 0xfe0d;

function read(...pieces: Uint8Array[]) {
  const reader = new ClientHelloReader();
  for (const piece of pieces) {
    const answer = reader.push(piece);
    if (answer.state !== "more") return answer;
  }
  return { state: "more" };
}

function hello(...args: Parameters<typeof clientHello>): Buffer {
  return record(HANDSHAKE, clientHello(...args));
}

test("the server name is found, in canonical form", () => {
  expect(read(hello("Example.COM"))).toEqual({ state: "hello", serverName: "example.com" });
});

test("a client may name no server", () => {
  expect(read(hello(null))).toEqual({ state: "hello", serverName: null });
  expect(read(hello(null, extension(10, Buffer.of(0, 29))))).toEqual({ state: "hello", serverName: null });
});

test("of an encrypted ClientHello the outer name counts", () => {
  const encrypted = extension(ENCRYPTED_CLIENT_HELLO, Buffer.from("inner.example"));
  expect(read(hello("outer.example", encrypted))).toEqual({ state: "hello", serverName: "outer.example" });
});

test("it may come in records and pieces of any size", () => {
  const message = clientHello("a.example", extension(21, Buffer.alloc(3000)));
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 4000 }),
      fc.integer({ min: 1, max: 4000 }),
      (recordBytes, pieceBytes) => {
        const records: Buffer[] = [];
        for (let at = 0; at < message.byteLength; at += recordBytes)
          records.push(record(HANDSHAKE, message.subarray(at, at + recordBytes)));
        const bytes = Buffer.concat(records);
        const pieces: Buffer[] = [];
        for (let at = 0; at < bytes.byteLength; at += pieceBytes)
          pieces.push(bytes.subarray(at, at + pieceBytes));
        expect(read(...pieces)).toEqual({ state: "hello", serverName: "a.example" });
      },
    ),
    { numRuns: 30 },
  );
});

test("every part of one is too little", () => {
  const bytes = hello("a.example");
  for (let end = 0; end < bytes.byteLength; end++)
    expect(read(bytes.subarray(0, end))).toEqual({ state: "more" });
});

test.each([
  ["plain http", Buffer.from("GET / HTTP/1.1\r\n"), "it is no TLS handshake"],
  ["SSL 2", Buffer.of(0x80, 46, 1, 3, 1), "it is no TLS handshake"],
  ["an alert", record(21, Buffer.of(2, 0)), "it is no TLS handshake"],
  ["another message", record(HANDSHAKE, Buffer.of(2, 0, 0, 0)), "it is no ClientHello"],
  ["an empty record", record(HANDSHAKE, Buffer.alloc(0)), "a record has no length that TLS allows"],
  ["a record that is too long", Buffer.of(22, 3, 1, 0x40, 1), "a record has no length that TLS allows"],
  [
    "another record in between",
    Buffer.concat([record(HANDSHAKE, Buffer.of(1, 0)), record(23, Buffer.of(1))]),
    "it is no TLS handshake",
  ],
  ["a length that is too large", record(HANDSHAKE, Buffer.of(1, 0, 0x80, 0)), "it is too large"],
  ["an empty message", record(HANDSHAKE, Buffer.of(1, 0, 0, 0)), "it ends too early"],
  ["two names", hello("a.example", serverNameExtension("b.example")), "it has two server names"],
  ["an address as the name", hello("1.2.3.4"), "its server name is no host name"],
  ["an empty name", hello(""), "its server name is no host name"],
  ["a name with a NUL", hello("a.example\0.evil.example"), "its server name is no host name"],
  [
    "a list of two names",
    hello(
      null,
      extension(
        0,
        sized(
          2,
          Buffer.concat(["a", "b"].map((name) => Buffer.concat([Buffer.of(0), sized(2, Buffer.from(name))]))),
        ),
      ),
    ),
    "its server name is no host name",
  ],
])("%s is refused", (_, bytes, why) => {
  expect(read(bytes)).toEqual({ state: "invalid", why });
});

test("one that is too large is refused before it is kept", () => {
  const reader = new ClientHelloReader();
  const start = Buffer.concat([Buffer.of(1), sized(3, Buffer.alloc(MAX_CLIENT_HELLO_BYTES - 4))]);
  expect(reader.push(record(HANDSHAKE, start.subarray(0, 16_384)))).toEqual({ state: "more" });
  expect(reader.push(record(HANDSHAKE, start.subarray(16_384, 32_000)))).toEqual({ state: "more" });
  expect(reader.push(record(HANDSHAKE, Buffer.alloc(16_384)))).toEqual({
    state: "invalid",
    why: "it is too large",
  });
});

test("the first byte tells whether TLS may follow", () => {
  expect(
    [[], [22], [22, 3], [22, 2], [0x47], [23, 3]].map((bytes) => mayBeClientHello(Uint8Array.from(bytes))),
  ).toEqual([true, true, true, true, false, false]);
});
