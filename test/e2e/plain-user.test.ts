import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expectNoLeftovers, vmsOf } from "../support/leftovers.ts";
import { describeWithVms, EXECUTABLE_PATH, IMAGE_PATH, TestHome } from "../support/real-vm.ts";
import { StdioClient } from "../support/stdio-client.ts";
import { TestSession } from "../support/test-server.ts";
import { TestStore } from "../support/test-store.ts";

/** "nobody", who owns nothing here */
const USER_ID = 65_534;

function mustRun(command: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(command);
  if (exitCode !== 0) throw new Error(`${command.join(" ")} failed: ${stderr}`);
}

/** Everything a user needs, in a directory of theirs: executable, image beside it, store, home. */
function installFor(home: TestHome): { executablePath: string; env: Record<string, string> } {
  const store = new TestStore(join(home.path, "store"));
  store.copySharedBase();
  const programPath = join(home.path, "program");
  mustRun(["mkdir", programPath]);
  mustRun(["cp", "--reflink=auto", EXECUTABLE_PATH, programPath]);
  mustRun(["cp", "--recursive", "--sparse=always", "--reflink=auto", IMAGE_PATH, programPath]);
  const env = home.env({ IGN_MCP_STORE: store.path, IGN_MCP_TOOLS: "all" });
  mustRun(["chown", "--recursive", `${USER_ID}:${USER_ID}`, home.path]);
  return { executablePath: join(programPath, "ignition-mcp"), env };
}

/** Argv that starts the executable without root's rights; as it is for a user who has none. */
function asPlainUser(executablePath: string): string[] {
  if (process.getuid?.() !== 0) return [executablePath];
  return ["setpriv", `--reuid=${USER_ID}`, `--regid=${USER_ID}`, "--clear-groups", "--", executablePath];
}

/** Real user of a process. /proc gives the files of some processes to root, so its owner does not tell. */
function userOf(pid: number): number {
  return Number(/^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

describeWithVms("a user without privileges", () => {
  test("has sessions too, and leaves nothing", async () => {
    using home = new TestHome();
    const { executablePath, env } = installFor(home);
    const [command = executablePath, ...args] = asPlainUser(executablePath);
    const client = await StdioClient.start({ command, args, env });
    let vms = vmsOf(client.pid);
    try {
      expect(userOf(client.pid)).not.toBe(0);
      const opened = await client.callOk("open_session");
      const session = new TestSession(client, String(opened.fields["session_id"]));
      expect(await session.output("id -u; python3 -c 'print(6 * 7)'")).toBe("0\n42\n");
      await session.writeFile("note.txt", "kept");
      expect(await session.output("cat note.txt")).toBe("kept");
      const taken = await client.callOk("checkpoint", { session_id: session.id });
      const forked = await client.callOk("fork", { checkpoint_id: taken.fields["checkpoint_id"] });
      const fork = new TestSession(client, String(forked.fields["session_id"]));
      expect(await fork.output("cat note.txt")).toBe("kept");
      await session.reset();
      vms = vmsOf(client.pid);
      for (const { pid } of vms) expect(userOf(pid)).not.toBe(0);
      // What the pool could not do on a busy machine is not about privileges.
      const lines = client.stderr.split("\n").filter((line) => line !== "" && !line.includes("pooled clone"));
      expect(lines).toEqual([]);
    } finally {
      await client[Symbol.asyncDispose]();
    }
    await expectNoLeftovers(home, vms);
  });
});
