import { expect, test } from "bun:test";
import { textOf } from "../../../src/egress/destination.ts";
import { readConnect, readGreeting, refusalReply } from "../../../src/egress/socks5.ts";

const NAME = Buffer.from("example.com");
const TO_NAME = Buffer.concat([Buffer.of(5, 1, 0, 3, NAME.byteLength), NAME, Buffer.of(1, 187)]);
const TO_V4 = Buffer.of(5, 1, 0, 1, 8, 8, 4, 4, 0, 80);
const TO_V6 = Buffer.from("050100042606470000000000000000000000111101bb", "hex");

test("a client that can do without a password is greeted", () => {
  expect(readGreeting(Buffer.of(5, 1, 0))).toEqual({ state: "ok", value: null, length: 3 });
  expect(readGreeting(Buffer.of(5, 2, 2, 0, 9))).toEqual({ state: "ok", value: null, length: 4 });
});

test.each([
  ["one that cannot", Buffer.of(5, 1, 2)],
  ["one without methods", Buffer.of(5, 0)],
  ["SOCKS 4", Buffer.of(4, 1, 0)],
])("%s is refused with 255", (_, bytes) => {
  expect(readGreeting(bytes)).toMatchObject({ state: "invalid", reply: Uint8Array.of(5, 0xff) });
});

test.each([
  [TO_NAME, "example.com:443"],
  [TO_V4, "8.8.4.4:80"],
  [TO_V6, "[2606:4700::1111]:443"],
])("a connect request is read", (bytes, destination) => {
  const answer = readConnect(Buffer.concat([bytes, Buffer.from("more")]));
  if (answer.state !== "ok") throw new Error(answer.state);
  expect(answer.length).toBe(bytes.byteLength);
  expect(textOf(answer.value)).toBe(destination);
});

test("every part of a message is too little", () => {
  for (const bytes of [TO_NAME, TO_V4, TO_V6])
    for (let end = 0; end < bytes.byteLength; end++)
      expect(readConnect(bytes.subarray(0, end))).toEqual({ state: "more" });
  for (let end = 0; end < 4; end++)
    expect(readGreeting(Buffer.of(5, 2, 0, 1).subarray(0, end))).toEqual({ state: "more" });
});

test.each([
  ["BIND", Buffer.of(5, 2, 0, 1), 7],
  ["UDP ASSOCIATE", Buffer.of(5, 3, 0, 1), 7],
  ["an unknown kind of address", Buffer.of(5, 1, 0, 2), 8],
  ["an empty name", Buffer.of(5, 1, 0, 3, 0), 8],
  ["another version", Buffer.of(4, 1, 0, 1), 1],
  ["a reserved byte", Buffer.of(5, 1, 1, 1), 1],
  ["port 0", Buffer.of(5, 1, 0, 1, 8, 8, 8, 8, 0, 0), 1],
  ["a name with a space", Buffer.of(5, 1, 0, 3, 3, 0x61, 0x20, 0x62, 0, 80), 1],
  [
    "a number in disguise",
    Buffer.concat([Buffer.of(5, 1, 0, 3, 5), Buffer.from("127.1"), Buffer.of(0, 80)]),
    1,
  ],
])("%s is refused with its reply", (_, bytes, reply) => {
  expect(readConnect(bytes)).toMatchObject({
    state: "invalid",
    reply: Uint8Array.of(5, reply, 0, 1, 0, 0, 0, 0, 0, 0),
  });
});

test.each([
  ["name_not_listed", 2],
  ["address_not_public", 2],
  ["too_many_connections", 2],
  ["unresolved", 4],
  ["unreachable", 4],
  ["connect_timeout", 4],
  ["internal_error", 1],
] as const)("%s is told as %i", (code, reply) => {
  expect(refusalReply(code)[1]).toBe(reply);
});
