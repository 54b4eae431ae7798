import { expect, test } from "bun:test";
import fc from "fast-check";
import { isPublic, isWithin, parseCidr, parseIp } from "../../../src/egress/ip-address.ts";

const NOT_PUBLIC = [
  "0.0.0.0",
  "0.1.2.3",
  "10.0.0.1",
  "100.64.0.1",
  "100.100.100.200",
  "127.0.0.1",
  "127.255.255.254",
  "168.63.129.16",
  "169.254.169.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.0.0.192",
  "192.0.2.1",
  "192.88.99.1",
  "192.168.1.1",
  "198.18.0.1",
  "198.51.100.1",
  "203.0.113.1",
  "224.0.0.1",
  "239.255.255.255",
  "240.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::7f00:1",
  "::ffff:127.0.0.1",
  "::ffff:a9fe:a9fe",
  "::ffff:0:127.0.0.1",
  "64:ff9b::127.0.0.1",
  "64:ff9b::169.254.169.254",
  "64:ff9b:1::8.8.8.8",
  "100::1",
  "2001::1",
  "2001:db8::1",
  "2002:7f00:1::",
  "2002:808:808::",
  "3fff::1",
  "5f00::1",
  "fc00::1",
  "fd00:ec2::254",
  "fe80::1",
  "fec0::1",
  "ff02::1",
];

const PUBLIC = [
  "1.1.1.1",
  "8.8.8.8",
  "11.0.0.1",
  "100.128.0.1",
  "172.32.0.1",
  "223.255.255.254",
  "2606:4700::1111",
  "2a00:1450::1",
  "::ffff:8.8.8.8",
  "64:ff9b::8.8.8.8",
];

test.each(NOT_PUBLIC)("%s is not public", (text) => {
  expect(isPublic(parseIp(text)!)).toBe(false);
});

test.each(PUBLIC)("%s is public", (text) => {
  expect(isPublic(parseIp(text)!)).toBe(true);
});

test.each([
  "",
  "1.2.3",
  "127.1",
  "0x7f.0.0.1",
  "010.0.0.1",
  "1.2.3.4.",
  "fe80::1%eth0",
  "[::1]",
  "1.2.3.4/32",
  "a",
])("%j is no address", (text) => {
  expect(parseIp(text)).toBeNull();
});

test("an IPv4 address is judged the same when it is mapped into IPv6", () => {
  fc.assert(
    fc.property(fc.ipV4(), (text) => {
      const mapped = parseIp(`::ffff:${text}`)!;
      expect(mapped.toString()).toBe(text);
      expect(isPublic(mapped)).toBe(isPublic(parseIp(text)!));
      expect(isPublic(parseIp(`64:ff9b::${text}`)!)).toBe(isPublic(parseIp(text)!));
    }),
  );
});

test("a range holds what has its prefix, of its own family", () => {
  const cidrs = ["10.1.0.0/16", "2001:db8::/32"].map((text) => parseCidr(text)!);
  expect(isWithin(parseIp("10.1.255.1")!, cidrs)).toBe(true);
  expect(isWithin(parseIp("::ffff:10.1.255.1")!, cidrs)).toBe(true);
  expect(isWithin(parseIp("10.2.0.1")!, cidrs)).toBe(false);
  expect(isWithin(parseIp("2001:db8:1::1")!, cidrs)).toBe(true);
  expect(isWithin(parseIp("2001:db9::1")!, cidrs)).toBe(false);
  expect(isWithin(parseIp("64:ff9b::10.1.0.1")!, cidrs)).toBe(false);
});

test.each([
  "10.0.0.0",
  "10.0.0.0/33",
  "10/8",
  "::/129",
  "10.0.0.0/-1",
  "10.0.0.0/8/8",
  "::ffff:10.0.0.0/104",
  "a/8",
  "/8",
])("%j is no range", (text) => {
  expect(parseCidr(text)).toBeNull();
});
