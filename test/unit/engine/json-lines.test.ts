import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { JsonLines } from "../../../src/engine/audit/json-lines.ts";
import { linesFromEnd } from "../../../src/engine/audit/lines-from-end.ts";
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
    const numbers = (await lines.newest(1000)).map(({ n }) => n);
    const kept = cut >= whole.length - 1 ? [1, 2] : cut >= whole.indexOf("\n") ? [1] : [];
    expect([cut, numbers]).toEqual([cut, [...kept, 3]]);
  }
});

test("a file beyond its size becomes .1, for its owner only, and is read on", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("log");
  using lines = new JsonLines(path, { rotateBytes: 20 });
  for (let n = 1; n <= 4; n++) lines.append({ n, pad: "xx" });
  expect(await lines.newest(1)).toEqual([{ n: 4, pad: "xx" }]);
  expect(await lines.newest(9)).toEqual([
    { n: 3, pad: "xx" },
    { n: 4, pad: "xx" },
  ]);
  expect(readFileSync(`${path}.1`, "utf8")).toBe('{"n":3,"pad":"xx"}\n');
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

/** Does something with the lines of `path` in a process whose files may have so many KiB, and tells what it printed. */
async function withSmallFiles(kib: number, path: string, work: string): Promise<Record<string, unknown>> {
  const source = Bun.resolveSync("../../../src/engine/audit/json-lines.ts", import.meta.dir);
  const script = `
    const { JsonLines } = await import(${JSON.stringify(source)});
    const lines = new JsonLines(${JSON.stringify(path)});
    ${work}`;
  const command = ["bash", "-c", `trap "" XFSZ; ulimit -f ${kib}; exec "$0" -e "$1"`];
  return JSON.parse(
    await new Response(Bun.spawn([...command, process.execPath, script]).stdout).text(),
  ) as Record<string, unknown>;
}

test("a disk that becomes full loses no record that was taken, and the file that was to be rewritten stays", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("log");
  const { taken } = (await withSmallFiles(
    2,
    path,
    `let taken = 0;
    try { for (;; taken++) lines.append({ n: taken, pad: "x".repeat(100) }); } catch {}
    console.log(JSON.stringify({ taken }));`,
  )) as { taken: number };
  expect(statSync(path).size).toBe(2048);
  const rewriting = `
    const error = await lines.rewrite(() => true).catch((error) => error);
    console.log(JSON.stringify({ error: error?.code ?? null }));`;
  expect(await withSmallFiles(1, path, rewriting)).toEqual({ error: "EFBIG" });
  expect(statSync(path).size).toBe(2048);
  using lines = new JsonLines(path);
  lines.append({ n: taken });
  expect((await lines.newest(1000)).map(({ n }) => n)).toEqual(
    Array.from({ length: taken + 1 }, (_, n) => n),
  );
  expect(readdirSync(directory.path)).toEqual(["log"]);
});

test("a link in the file's place is not followed", () => {
  using directory = new TemporaryDirectory();
  symlinkSync(directory.join("elsewhere"), directory.join("log"));
  using lines = new JsonLines(directory.join("log"));
  expect(() => lines.append({ n: 1 })).toThrow("ELOOP");
  expect(existsSync(directory.join("elsewhere"))).toBe(false);
});

test("what is appended while a file is rewritten, and after it, follows what was kept", async () => {
  using directory = new TemporaryDirectory();
  using lines = new JsonLines(directory.join("log"));
  const pad = "x".repeat(200);
  for (let n = 0; n < 5000; n++) lines.append({ n, pad });
  const asked: unknown[] = [];
  let isDone = false;
  const rewriting = lines
    .rewrite(({ n }) => {
      asked.push(n);
      return (n as number) % 1000 < 2 || (n as number) >= 5000;
    })
    .finally(() => {
      isDone = true;
    });
  const meanwhile: number[] = [];
  for (let n = 5000; !isDone; n++) {
    lines.append({ n });
    meanwhile.push(n);
    // Nobody waits for a rewrite: others have their turns.
    await new Promise(setImmediate);
  }
  await rewriting;
  lines.append({ n: -1 });
  expect(meanwhile.length).toBeGreaterThan(1);
  const kept = [0, 1000, 2000, 3000, 4000].flatMap((n) => [n, n + 1]);
  expect((await lines.newest(1e6)).map(({ n }) => n)).toEqual([...kept, ...meanwhile, -1]);
  expect(asked).toEqual(asked.toSorted((a, b) => Number(b) - Number(a)));
  expect(readdirSync(directory.path)).toEqual(["log"]);
});

test("the newest of a long file are found without reading all of it", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("log");
  writeFileSync(path, `{"n":1,"pad":"${"x".repeat(1000)}"}\n`.repeat(2000));
  await using file = await open(path, "r");
  let bytes = 0;
  const counting = {
    read: async (...of: Parameters<typeof file.read>) => {
      const result = await file.read(...of);
      bytes += result.bytesRead;
      return result;
    },
  } as unknown as FileHandle;
  const { value } = await linesFromEnd(counting, statSync(path).size).next();
  expect([value?.length, bytes]).toEqual([257, 262_144]);
});

test("lines come back as they are, wherever blocks end, with their places", async () => {
  using directory = new TemporaryDirectory();
  const path = directory.join("log");
  const texts = ["", "a", "\u00fc".repeat(300_000), "", "b".repeat(262_143), "c".repeat(262_144), "torn"];
  writeFileSync(path, texts.join("\n"));
  await using file = await open(path, "r");
  const whole = readFileSync(path);
  const found: string[] = [];
  for await (const lines of linesFromEnd(file, whole.byteLength))
    for (const { text, start, end } of lines) {
      expect(text).toBe(whole.subarray(start, end).toString());
      found.unshift(text);
    }
  expect(found.join("")).toBe(texts.join("\n"));
  expect(found).toHaveLength(texts.length);
});
