import { expect, test } from "bun:test";
import fc from "fast-check";
import { auditedText } from "../../../src/base/audited-text.ts";
import { isTenantId } from "../../../src/base/tenant-id.ts";
import { loadConfig } from "../../../src/config/load-config.ts";
import { nanoId } from "../../../src/engine/nano-id.ts";
import { machineSourceOf } from "../../../src/engine/profiles/machine-source.ts";
import { type Profile, profileSchema } from "../../../src/engine/profiles/profile.ts";
import { quoted, taskCommand } from "../../../src/engine/tasks/task-command.ts";
import { freeGuestAddress } from "../../../src/engine/vms/guest-addresses.ts";
import { workspacePath } from "../../../src/engine/workspace/workspace-path.ts";
import { anonymousBytesIn, cpuMsIn } from "../../../src/vm/vmm-usage.ts";

const profileOf = (fields: object): Profile => ({
  name: "p",
  egressPath: "",
  ...profileSchema.parse(fields),
});

test("ids are nanoseconds that only grow", () => {
  const ids = Array.from({ length: 1000 }, () => nanoId("vm-"));
  expect(new Set(ids).size).toBe(1000);
  expect(ids.toSorted()).toEqual(ids);
  expect(Math.abs(Number(ids[0]!.slice(3)) / 1e6 - Date.now())).toBeLessThan(60_000);
});

test("guest addresses fill a network from .2 to .254, then the next, and gaps first", () => {
  const taken = new Set<string>();
  for (let count = 0; count < 254; count++) taken.add(freeGuestAddress(taken));
  const all = [...taken];
  expect([all[0], all[252], all[253]]).toEqual(["10.0.1.2", "10.0.1.254", "10.0.2.2"]);
  taken.delete("10.0.1.9");
  expect(freeGuestAddress(taken)).toBe("10.0.1.9");
});

test("a quoted text is one word of the shell, whatever it is", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      fc.pre(!text.includes("\0"));
      const { stdout } = Bun.spawnSync(["sh", "-c", `printf %s ${quoted(text)}`]);
      return stdout.toString() === text;
    }),
    { numRuns: 50 },
  );
});

test("a cleaned workspace path never leads out", () => {
  const part = fc.constantFrom("..", ".", "a", "b c", "", "...", " ");
  fc.assert(
    fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
      let clean: string;
      try {
        clean = workspacePath(parts.join("/"));
      } catch {
        return true;
      }
      return clean !== "" && !clean.startsWith("/") && !clean.split("/").includes("..");
    }),
  );
});

test("a task's variables and depth come before its command", () => {
  const profile = profileOf({ task_command: "run", environment: { A: "x y" } });
  const { command, stdin } = taskCommand(profile, { prompt: "hello", depth: 3 });
  expect(command).toBe("export A='x y'\nexport EPHEMERA_TASK_DEPTH='3'\nrun");
  expect(new TextDecoder().decode(stdin!)).toBe("hello");
});

test("a prompt that is an argument fits into one, with the instructions before it", () => {
  const argument = { task_command: "run", prompt: "argument", system_prompt: "" };
  const run = (prompt: string, fields: object = {}) =>
    taskCommand(profileOf({ ...argument, ...fields }), { prompt, depth: 1 });
  expect(() => run("a\0b")).toThrow("the prompt has a NUL in it, and profile 'p'");
  const longest = "\u00fc".repeat(65_535);
  expect(run(`${longest}x`).command).toEndWith(`run '${longest}x'`);
  expect(() => run(`${longest}xy`)).toThrow("has 131072 bytes");
  expect(() => run(longest, { system_prompt: "Be brief." })).toThrow(
    "as an argument, which has 131071 at most",
  );
  expect(run(`${longest}xy\0`, { prompt: "stdin" }).stdin).toHaveLength(131_073);
});

test("a profile of another size has a base of its own, one that names a base has that", () => {
  const config = loadConfig({});
  const source = (fields: object) => machineSourceOf(profileOf({ task_command: "x", ...fields }), config);
  expect(source({}).name).toBe("tools-base");
  expect(source({ cpus: 1, memory_mib: 512 }).name).toBe("tools-base");
  expect(source({ cpus: 2, memory_mib: 1024 })).toMatchObject({ name: "tools-base-2x1024", cpus: 2 });
  expect(source({ base: "mine" }).name).toBe("mine");
});

test("audited errors are short and free of secrets", () => {
  expect(auditedText("Authorization: x")).toBe("operation failed");
  expect(auditedText("bad token")).toBe("operation failed");
  expect(auditedText("x".repeat(300))).toBe(`${"x".repeat(240)}...`);
});

test("tenant ids", () => {
  for (const id of ["a", "0", "A.b_c-d", "x".repeat(64)]) expect([id, isTenantId(id)]).toEqual([id, true]);
  for (const id of ["", ".a", "-a", "a..b", "a/b", "ä", "x".repeat(65)])
    expect([id, isTenantId(id)]).toEqual([id, false]);
});

test("processor time and memory are read from /proc whatever the process is called", () => {
  const stat = `7 (a) b (c) S 1 ${"0 ".repeat(9)}150 50 0 0`;
  expect(cpuMsIn(stat)).toBe(2000);
  expect(anonymousBytesIn("VmRSS:\t 9 kB\nRssAnon:\t    12 kB\n")).toBe(12_288);
  expect(anonymousBytesIn("")).toBe(0);
});
