import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { describeWithNamespace, NetworkNamespace } from "../../support/network-namespace.ts";

const PROGRAM = resolve(import.meta.dir, "../../support/slow-names.ts");

describeWithNamespace("names that the machine's nameserver does not answer", () => {
  test("hold up no work on files", async () => {
    await using namespace = await NetworkNamespace.open({}, "127.0.0.77");
    const child = Bun.spawn(namespace.argv(process.execPath, PROGRAM), { stdout: "pipe", stderr: "pipe" });
    const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    expect({ out, err }).toEqual({ out: "0 of 64\n", err: "" });
  }, 60_000);
});
