import { afterAll, beforeAll, expect, test } from "bun:test";
import { shortLabel } from "../../support/short-label.ts";
import { Adapter } from "./adapter.ts";

let adapter: Adapter;
beforeAll(async () => {
  adapter = await Adapter.start();
  await adapter.ok("anvil_spawn_vm", { session_name: "taken" });
});
afterAll(() => adapter[Symbol.asyncDispose]());

const VM = { vm_id: "vm-1" };
const FILE = { ...VM, path: "a", content: "" };
const NO_VM = "vm ID or session name is required";
const ODD_TENANT = { tenant_id: "a..b" };
const TENANT_TEXT =
  'tenant_id must be at most 64 of A-Z a-z 0-9 . _ - that start with a letter or digit, without ".."';
const ID_TEXT = (name: string) =>
  `${name} must be at most 128 of A-Z a-z 0-9 . _ - and neither "." nor contain ".."`;
const EGRESS_TEXT = "egress_policy must be empty, deny_all, profile, or allow_all";
const RELATIVE = "path must be a non-empty relative workspace path";
const WITHIN = "path must stay within workspace";
const FLOCK = { task: "t", roles: ["r"] };
const POST = { flock_id: "f", agent_id: "a", body: "b" };
const REPLICA = { snapshot_id: "s", source_host: "a", target_host: "b" };

const REFUSALS: [tool: string, args: Record<string, unknown>, text: string][] = [
  ["anvil_spawn_vm", { egress_policy: "open" }, EGRESS_TEXT],
  ["anvil_spawn_vm", { session_name: "taken" }, 'session "taken" already exists'],
  ["anvil_spawn_vm", { profile: 7 }, "profile must be text, not a number."],
  ["anvil_run_task", VM, "prompt is missing."],
  ["anvil_run_task", { ...VM, prompt: " \n" }, "prompt must be non-empty"],
  ["anvil_run_task", { ...VM, prompt: "x", timeout_seconds: -1 }, "timeout_seconds must be non-negative"],
  ["anvil_run_task", { ...VM, prompt: "x", timeout_seconds: 86_401 }, "timeout_seconds must be <= 86400"],
  [
    "anvil_run_task",
    { ...VM, prompt: "x", timeout_seconds: 0.5 },
    "timeout_seconds must be a whole number, not a number.",
  ],
  ["anvil_run_task", { prompt: "x" }, NO_VM],
  ["anvil_run_task", { prompt: "x", session_name: "nobody" }, 'unknown session "nobody"'],
  ["anvil_run_task", { prompt: "x", vm_id: "../flocks" }, ID_TEXT("vm_id")],
  ["anvil_run_task", { prompt: "x", vm_id: ".." }, ID_TEXT("vm_id")],
  ["anvil_run_task", { prompt: "x", vm_id: "v".repeat(129) }, ID_TEXT("vm_id")],
  ["anvil_copy_in", { ...FILE, path: " " }, RELATIVE],
  ["anvil_copy_in", { ...FILE, path: "/etc/passwd" }, RELATIVE],
  ["anvil_copy_in", { ...FILE, path: "a\\b" }, RELATIVE],
  ["anvil_copy_in", { ...FILE, path: "a/../../b" }, WITHIN],
  ["anvil_copy_in", { ...FILE, path: "." }, WITHIN],
  ["anvil_copy_in", { ...FILE, encoding: "hex" }, "encoding must be empty, text, or base64"],
  ["anvil_copy_in", { ...FILE, encoding: "base64", content: "a$" }, "content must be valid base64"],
  [
    "anvil_copy_in",
    { ...FILE, content: "é".repeat(2_097_153) },
    "content exceeds 4194304 byte workspace file limit",
  ],
  ["anvil_copy_in", { path: "a", content: "" }, NO_VM],
  ["anvil_copy_out", { ...VM, path: "" }, RELATIVE],
  ["anvil_copy_out", { ...VM, path: ".." }, WITHIN],
  ["anvil_copy_out", { ...VM, path: "a", encoding: "utf-16" }, "encoding must be empty, text, or base64"],
  ["anvil_copy_out", { path: "a" }, NO_VM],
  ["anvil_get_vm_health", {}, NO_VM],
  ["anvil_stop_vm", {}, NO_VM],
  ["anvil_delete_vm", { session_name: " " }, NO_VM],
  ["anvil_create_snapshot", VM, "stop_after is missing."],
  ["anvil_create_snapshot", { ...VM, stop_after: false, type: "half" }, "type must be empty, full, or diff"],
  ["anvil_create_snapshot", { stop_after: false }, NO_VM],
  ["anvil_restore_snapshot", { snapshot_id: " " }, "snapshot_id is required"],
  ["anvil_restore_snapshot", { snapshot_id: "a/b" }, ID_TEXT("snapshot_id")],
  ["anvil_restore_snapshot", { snapshot_id: "s", egress_policy: "none" }, EGRESS_TEXT],
  ["anvil_restore_snapshot", { snapshot_id: "s", session_name: "taken" }, 'session "taken" already exists'],
  ["anvil_delete_snapshot", { snapshot_id: "" }, "snapshot_id is required"],
  ["anvil_replicate_snapshot", { ...REPLICA, snapshot_id: " " }, "snapshot_id is required"],
  ["anvil_replicate_snapshot", { ...REPLICA, source_host: " " }, "source_host is required"],
  ["anvil_replicate_snapshot", { ...REPLICA, target_host: " " }, "target_host is required"],
  ["anvil_replicate_snapshot", REPLICA, "configured daemon does not support snapshot replication"],
  ["anvil_spawn_flock", { ...FLOCK, egress_policy: "x" }, EGRESS_TEXT],
  ["anvil_spawn_flock", { ...FLOCK, task: " " }, "task must be non-empty"],
  ["anvil_spawn_flock", { ...FLOCK, roles: [] }, "roles must contain at least one role"],
  ["anvil_spawn_flock", { ...FLOCK, roles: Array(21).fill("r") }, "roles must contain at most 20 roles"],
  ["anvil_spawn_flock", { ...FLOCK, roles: ["a", " "] }, "roles must not contain empty role"],
  ["anvil_spawn_flock", { ...FLOCK, roles: ["a/b"] }, "roles must not contain path separators"],
  ["anvil_spawn_flock", { ...FLOCK, roles: ["a\\b"] }, "roles must not contain path separators"],
  ["anvil_spawn_flock", { ...FLOCK, roles: "worker" }, "roles must be an array, not text."],
  ["anvil_spawn_flock", { ...FLOCK, roles: [1] }, "each of roles must be text, not a number."],
  ["anvil_create_routed_flock_members", { ...FLOCK, task: "" }, "task must be non-empty"],
  ["anvil_create_routed_flock_members", FLOCK, "routed flock members create is disabled"],
  ["anvil_get_flock", { flock_id: " " }, "flock_id is required"],
  ["anvil_get_flock", { flock_id: "a/b" }, "flock_id must not contain path separators"],
  ["anvil_get_flock", { flock_id: ".." }, 'flock_id must not be "." or ".."'],
  ["anvil_delete_flock", { flock_id: "a\\b" }, "flock_id must not contain path separators"],
  ["anvil_post_townwall", { ...POST, flock_id: "" }, "flock_id is required"],
  ["anvil_post_townwall", { ...POST, agent_id: " " }, "agent_id must be non-empty"],
  ["anvil_post_townwall", { ...POST, body: "\n" }, "body must be non-empty"],
  ["anvil_get_townwall_history", { flock_id: "" }, "flock_id is required"],
  // The tenant comes before everything else, then the tool's own arguments, then the VM
  ["anvil_spawn_vm", { ...ODD_TENANT, egress_policy: "x" }, TENANT_TEXT],
  ["anvil_run_task", { ...ODD_TENANT, prompt: "" }, TENANT_TEXT],
  ["anvil_run_task", { prompt: " ", timeout_seconds: -1 }, "prompt must be non-empty"],
  ["anvil_run_task", { prompt: "x", timeout_seconds: -1 }, "timeout_seconds must be non-negative"],
  ["anvil_copy_in", { path: "..", content: "$", encoding: "x" }, WITHIN],
  ["anvil_copy_in", { path: "a", content: "$", encoding: "x" }, "encoding must be empty, text, or base64"],
  ["anvil_copy_in", { path: "a", content: "$", encoding: "base64" }, "content must be valid base64"],
  ["anvil_list_flocks", { tenant_id: "-a" }, TENANT_TEXT],
  ["anvil_list_flocks", { tenant_id: "a".repeat(65) }, TENANT_TEXT],
  [
    "anvil_stop_vm",
    { vm: "vm-1" },
    'There is no argument "vm" (did you mean vm_id?). Pass only vm_id, session_name, tenant_id.',
  ],
];

test.each(REFUSALS.map(([tool, args, text]) => [tool, shortLabel(args), args, text] as const))(
  "%s %s is refused before the daemon hears of it",
  async (tool, _, args, text) => {
    const before = adapter.daemon.lines;
    expect(await adapter.refusal(tool, args)).toBe(text);
    expect(adapter.daemon.lines).toEqual(before);
  },
);

test("null and empty text are arguments left out, and zero is no timeout", async () => {
  const none = { session_name: null, tenant_id: "", egress_policy: "" };
  expect(await adapter.ok("anvil_spawn_vm", none)).toMatchObject({ egress_policy: "profile" });
  await adapter.ok("anvil_run_task", { ...VM, prompt: "x", timeout_seconds: 0 });
});

test("exactly 4 MiB and exactly 24 hours are allowed, and so is an empty file", async () => {
  await adapter.ok("anvil_copy_in", { ...FILE, content: "x".repeat(4_194_304) });
  await adapter.ok("anvil_copy_in", FILE);
  await adapter.ok("anvil_run_task", { ...VM, prompt: "x", timeout_seconds: 86_400 });
});

test("what is sent along to a tool without arguments is ignored", async () => {
  await adapter.ok("anvil_list_snapshots", { anything: true });
});
