import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { readTlsMaterial } from "../../../src/mcp/tls-material.ts";
import { makeCertificate } from "../../support/certificate.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

test("takes a certificate with its key, and says what is wrong with anything else", () => {
  using directory = new TemporaryDirectory();
  const one = makeCertificate(directory, "one");
  const other = makeCertificate(directory, "other");
  expect(readTlsMaterial(one).cert).toContain("BEGIN CERTIFICATE");
  expect(() => readTlsMaterial({ ...one, keyPath: other.keyPath })).toThrow(/not that of the certificate/);
  expect(() => readTlsMaterial({ ...one, keyPath: directory.join("none") })).toThrow(
    /cannot be read \(ENOENT\)/,
  );
  writeFileSync(directory.join("junk"), "junk");
  expect(() => readTlsMaterial({ ...one, certPath: directory.join("junk") })).toThrow(/no PEM certificate/);
});
