import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { HostsFile } from "../../../src/egress/hosts-file.ts";
import { nameResolver } from "../../../src/egress/resolve-name.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

test("names and aliases are found in any case, IPv4 first, and comments are none", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("hosts");
  writeFileSync(
    path,
    "# 1.1.1.1 a.example\n2001:db8::1 A.example\n\n10.0.0.1\ta.example  alias # b.example\r\n",
  );
  const hosts = new HostsFile(path);
  expect(await hosts.addressesOf("a.example")).toEqual(["10.0.0.1", "2001:db8::1"]);
  expect(await hosts.addressesOf("alias")).toEqual(["10.0.0.1"]);
  expect(await hosts.addressesOf("b.example")).toEqual([]);
});

test("a change counts for the next question, and a machine may have no such file", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("hosts");
  const resolve = nameResolver([], path);
  const hosts = new HostsFile(path);
  expect(await hosts.addressesOf("a.example")).toEqual([]);
  for (const address of ["10.0.0.1", "10.0.0.20"]) {
    writeFileSync(path, `${address} a.example\n`);
    expect(await hosts.addressesOf("a.example")).toEqual([address]);
    expect(await resolve("a.example", new AbortController().signal)).toEqual([address]);
  }
});
