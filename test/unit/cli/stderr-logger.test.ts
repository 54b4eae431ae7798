import { expect, test } from "bun:test";

/** Runs the script in a process of its own with the logger in scope, since it writes to fd 2. */
async function linesOf(script: string): Promise<Record<string, unknown>[]> {
  const module = `${import.meta.dir}/../../../src/cli/stderr-logger.ts`;
  const source = `import { createStderrLogger } from ${JSON.stringify(module)};\n${script}`;
  const child = Bun.spawn([process.execPath, "-e", source], { stdout: "pipe", stderr: "pipe" });
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  expect(out).toBe("");
  return err
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

test("lines of the level and above go to stderr as JSON, even when the process ends at once", async () => {
  const lines = await linesOf(`
    const log = createStderrLogger("info");
    log.debug({}, "too detailed");
    log.info({ tool: "run" }, "a call");
    log.error({ err: new TypeError("boom") }, "a failure");
    process.exit(0);
  `);
  expect(lines).toMatchObject([
    { level: 30, tool: "run", msg: "a call" },
    { level: 50, err: { type: "TypeError", message: "boom" }, msg: "a failure" },
  ]);
});

test("silent writes nothing", async () => {
  expect(await linesOf(`createStderrLogger("silent").error({}, "x");`)).toEqual([]);
});
