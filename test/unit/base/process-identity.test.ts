import { expect, test } from "bun:test";
import { identityOf, isAlive, isProcessIdentity } from "../../../src/base/process-identity.ts";
import { deadIdentity, IdleProcess } from "../../support/idle-process.ts";
import { readProcess } from "../../support/processes.ts";

test("a process is named by its pid and the time it started", () => {
  const { startTicks } = readProcess(process.pid)!;
  expect(identityOf(process.pid)).toBe(`${process.pid}-${startTicks}`);
});

test("a process that runs is alive, and is not once it has ended", async () => {
  const child = new IdleProcess();
  expect(isAlive(child.identity)).toBe(true);
  await child[Symbol.asyncDispose]();
  expect(isAlive(child.identity)).toBe(false);
  expect(identityOf(child.pid)).toBeNull();
});

test("a zombie has ended", async () => {
  // The child ends when exec has replaced the shell that would have waited for it.
  const shell = Bun.spawn(["sh", "-c", "sleep 0.05 & echo $!; exec sleep 600"], {
    stdout: "pipe",
    stdin: "ignore",
  });
  try {
    const { value } = await shell.stdout.getReader().read();
    const pid = Number(Buffer.from(value!).toString());
    while (readProcess(pid)?.state !== "Z") await Bun.sleep(2);
    expect(identityOf(pid)).toBeNull();
  } finally {
    shell.kill("SIGKILL");
    await shell.exited;
  }
});

test("a pid that lives again under another start time is another process", () => {
  expect(isAlive(`${process.pid}-1`)).toBe(false);
});

test("a name with spaces and parentheses does not confuse the count of fields", async () => {
  const child = Bun.spawn(["bash", "-c", "printf 'a) b (c' >/proc/self/comm; echo; exec -a x sleep 600"], {
    stdout: "pipe",
    stdin: "ignore",
  });
  try {
    await child.stdout.getReader().read();
    expect(identityOf(child.pid)).toBe(`${child.pid}-${readProcess(child.pid)!.startTicks}`);
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
});

test("text that is no identity is nobody's", async () => {
  for (const text of ["", "abc", "12", "-1-2", "12-", "12-3-4", "1 2", "../12-3", "12-3\n"]) {
    expect(isProcessIdentity(text)).toBe(false);
    expect(isAlive(text)).toBe(false);
  }
  expect(isProcessIdentity(await deadIdentity())).toBe(true);
});
