import { expect, test } from "bun:test";
import fc from "fast-check";
import { isInternal, parseAuthority, parseName, textOf } from "../../../src/egress/destination.ts";
import { labelled } from "../../support/short-label.ts";

test.each([
  ["Example.COM", "example.com"],
  ["example.com.", "example.com"],
  ["_dmarc.a-b.example", "_dmarc.a-b.example"],
  ["localhost", "localhost"],
  ["1.example", "1.example"],
])("%s is the name %s", (text, name) => {
  expect(parseName(text)).toBe(name);
});

test.each(
  labelled([
    "",
    ".",
    "a..b",
    "-a.b",
    "a-.b",
    "a b",
    "a\nb",
    "exämple.com",
    "*.example.com",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "1.2.3.4",
    "1.2.3.4.5",
    "a.0x",
    `${"a".repeat(64)}.com`,
    `${"a.".repeat(127)}aa`,
  ]),
)("%s is no name", (_, text) => {
  expect(parseName(text)).toBeNull();
});

test.each([
  ["example.com:443", "example.com:443"],
  ["EXAMPLE.com.:443", "example.com:443"],
  ["1.2.3.4:80", "1.2.3.4:80"],
  ["[2001:DB8::1]:443", "[2001:db8::1]:443"],
  ["[::ffff:1.2.3.4]:443", "1.2.3.4:443"],
  ["example.com", "example.com:80"],
])("the authority %s is %s", (text, canonical) => {
  expect(textOf(parseAuthority(text, 80)!)).toBe(canonical);
});

test.each([
  "",
  ":80",
  "a:0",
  "a:65536",
  "a:1:2",
  "u@a:80",
  "::1:80",
  "[1.2.3.4]:80",
  "[::1",
  "[fe80::1%lo]:80",
  "a:+80",
  "a:80 ",
])("%j is no authority", (text) => {
  expect(parseAuthority(text, 80)).toBeNull();
});

test("without a default, an authority needs its port", () => {
  expect(parseAuthority("example.com", null)).toBeNull();
});

test("what is written of a destination reads as the same destination, in harmless characters", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.domain(),
        fc.ipV4(),
        fc.ipV6().map((text) => `[${text}]`),
      ),
      fc.nat(70_000),
      (host, port) => {
        const destination = parseAuthority(`${host}:${port}`, null);
        if (!destination) return;
        expect(textOf(destination)).toMatch(/^[a-z0-9._:[\]-]+$/);
        expect(textOf(parseAuthority(textOf(destination), null)!)).toBe(textOf(destination));
      },
    ),
  );
});

test("the internal name is one on port 80", () => {
  expect(isInternal(parseAuthority("ignition.internal", 80)!)).toBe(true);
  expect(isInternal(parseAuthority("ignition.internal:443", 80)!)).toBe(false);
  expect(isInternal(parseAuthority("x.ignition.internal", 80)!)).toBe(false);
});
