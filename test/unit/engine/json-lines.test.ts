import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { JsonLines } from "../../../src/engine/audit/json-lines.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

test("records come back in order, also after a file that ends anywhere in a line", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("log");
  {
    using lines = new JsonLines(path);
    lines.append({ n: 1 });
    lines.append({ n: 2, text: "a\nb" });
  }
  const whole = readFileSync(path);
  for (let cut = 0; cut <= whole.length; cut++) {
    writeFileSync(path, whole.subarray(0, cut));
    using lines = new JsonLines(path);
    lines.append({ n: 3 });
    const numbers = (await lines.read()).map(({ n }) => n);
    const kept = cut >= whole.length - 1 ? [1, 2] : cut >= whole.indexOf("\n") ? [1] : [];
    expect([cut, numbers]).toEqual([cut, [...kept, 3]]);
  }
});

test("a file beyond its size becomes .1, for its owner only", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("log");
  using lines = new JsonLines(path, { rotateBytes: 20 });
  for (let n = 1; n <= 4; n++) lines.append({ n, pad: "xx" });
  expect(await lines.read()).toEqual([{ n: 4, pad: "xx" }]);
  expect(readFileSync(`${path}.1`, "utf8")).toBe('{"n":3,"pad":"xx"}\n');
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("a disk that becomes full loses no record that was taken, and the file that was to be rewritten stays", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("log");
  const script = `
    const { JsonLines } = await import(${JSON.stringify(Bun.resolveSync("../../../src/engine/audit/json-lines.ts", import.meta.dir))});
    const lines = new JsonLines(${JSON.stringify(path)});
    let taken = 0;
    try { for (;; taken++) lines.append({ n: taken, pad: "x".repeat(100) }); } catch {}
    let isRewritten = true;
    try { lines.rewrite((records) => [...records, ...records]); } catch { isRewritten = false; }
    console.log(JSON.stringify({ taken, isRewritten }));`;
  // 2048 bytes for any file
  const limited = ["bash", "-c", 'trap "" XFSZ; ulimit -f 2; exec "$0" -e "$1"', process.execPath, script];
  const { taken, isRewritten } = JSON.parse(await new Response(Bun.spawn(limited).stdout).text());
  expect([statSync(path).size, isRewritten]).toEqual([2048, false]);
  using lines = new JsonLines(path);
  lines.append({ n: taken });
  expect((await lines.read()).map(({ n }) => n)).toEqual(Array.from({ length: taken + 1 }, (_, n) => n));
  expect(readdirSync(directory.path)).toEqual(["log"]);
});

test("a link in the file's place is not followed", () => {
  using directory = new TemporaryDirectory();
  symlinkSync(directory.join("elsewhere"), directory.join("log"));
  using lines = new JsonLines(directory.join("log"));
  expect(() => lines.append({ n: 1 })).toThrow("ELOOP");
  expect(existsSync(directory.join("elsewhere"))).toBe(false);
});

test("what is appended after a rewrite follows what was kept", async () => {
  using directory = new TemporaryDirectory();
  using lines = new JsonLines(directory.join("log"));
  for (let n = 1; n <= 3; n++) lines.append({ n });
  expect(lines.rewrite((records) => records.slice(-1))).toEqual([{ n: 3 }]);
  lines.append({ n: 4 });
  expect(await lines.read()).toEqual([{ n: 3 }, { n: 4 }]);
});
