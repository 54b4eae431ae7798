import { expect, test } from "bun:test";
import { ANVIL_TOOLS } from "../../../src/anvil/tool-list.ts";
import type { PortableSchema } from "../../../src/mcp/portable-schema.ts";
import { Adapter } from "./adapter.ts";

const GEMINI_TYPES = ["string", "number", "integer", "boolean", "array", "object"];
const ALLOWED_KEYS = ["type", "description", "enum", "items", "properties", "required"];
const NAME = /^[a-z_][a-z0-9_]{0,63}$/;

const documents = ANVIL_TOOLS.map((tool) => tool.document);
const names = documents.map((tool) => tool.name);

/** What IronClaw or Gemini would refuse in a function declaration, as `path: reason`. */
function declarationProblems(schema: PortableSchema, path: string): string[] {
  const found = Object.keys(schema)
    .filter((key) => !ALLOWED_KEYS.includes(key))
    .map((key) => `${path}: key ${key}`);
  if (typeof schema.type !== "string" || !GEMINI_TYPES.includes(schema.type))
    found.push(`${path}: type ${JSON.stringify(schema.type)}`);
  if (schema.type === "array" && !schema.items) found.push(`${path}: no items`);
  if (schema.type === "array" && schema.items) found.push(...declarationProblems(schema.items, `${path}[]`));
  if (schema.type !== "object") return found;
  for (const name of schema.required ?? [])
    if (!(name in schema.properties)) found.push(`${path}: requires ${name}, which is missing`);
  for (const [name, property] of Object.entries(schema.properties)) {
    if (!NAME.test(name)) found.push(`${path}: name ${name}`);
    found.push(...declarationProblems(property, `${path}.${name}`));
  }
  return found;
}

// After a change that is meant: bun test --update-snapshots test/contract/anvil/tool-list.test.ts
test("tools/list is the committed document", async () => {
  await using adapter = await Adapter.start();
  expect(JSON.stringify((await adapter.client.listTools()).tools, null, 2)).toMatchSnapshot();
});

test("all 19 tools are registered in the documented order, whatever is configured", () => {
  expect(names).toEqual([
    "anvil_spawn_vm",
    "anvil_run_task",
    "anvil_copy_in",
    "anvil_copy_out",
    "anvil_get_vm_health",
    "anvil_stop_vm",
    "anvil_delete_vm",
    "anvil_create_snapshot",
    "anvil_list_snapshots",
    "anvil_restore_snapshot",
    "anvil_delete_snapshot",
    "anvil_replicate_snapshot",
    "anvil_spawn_flock",
    "anvil_create_routed_flock_members",
    "anvil_list_flocks",
    "anvil_get_flock",
    "anvil_delete_flock",
    "anvil_post_townwall",
    "anvil_get_townwall_history",
  ]);
});

test.each(documents.map((tool) => [tool.name, tool] as const))(
  "%s can be declared to IronClaw and Gemini",
  (name, { description, inputSchema, outputSchema }) => {
    expect(name).toMatch(NAME);
    expect(Buffer.byteLength(description)).toBeWithin(20, 2049);
    expect(declarationProblems(inputSchema, name)).toEqual([]);
    expect(inputSchema.type).toBe("object");
    expect(declarationProblems(outputSchema!, name)).toEqual([]);
    expect(outputSchema!.type).toBe("object");
  },
);

test("every argument is described", () => {
  const bare = documents.flatMap(({ name, inputSchema }) =>
    Object.entries(inputSchema.properties)
      .filter(([, property]) => !property.description)
      .map(([argument]) => `${name}.${argument}`),
  );
  expect(bare).toEqual([]);
});

test("the documented arguments, and which of them are required", () => {
  const listed = documents.map(({ name, inputSchema: { properties, required = [] } }) => {
    const all = Object.keys(properties).map((field) => (required.includes(field) ? `${field}*` : field));
    return `${name}: ${all.toSorted().join(" ")}`;
  });
  expect(listed).toEqual([
    "anvil_spawn_vm: egress_policy profile session_name tenant_id",
    "anvil_run_task: prompt* session_name tenant_id timeout_seconds vm_id",
    "anvil_copy_in: content* encoding overwrite path* session_name tenant_id vm_id",
    "anvil_copy_out: encoding path* session_name tenant_id vm_id",
    "anvil_get_vm_health: session_name tenant_id vm_id",
    "anvil_stop_vm: session_name tenant_id vm_id",
    "anvil_delete_vm: session_name tenant_id vm_id",
    "anvil_create_snapshot: session_name stop_after* tenant_id type vm_id",
    "anvil_list_snapshots: ",
    "anvil_restore_snapshot: egress_policy session_name snapshot_id* tenant_id",
    "anvil_delete_snapshot: snapshot_id* tenant_id",
    "anvil_replicate_snapshot: include_dependencies snapshot_id* source_host* target_host*",
    "anvil_spawn_flock: egress_policy roles* task* tenant_id",
    "anvil_create_routed_flock_members: egress_policy roles* task* tenant_id",
    "anvil_list_flocks: tenant_id",
    "anvil_get_flock: flock_id* tenant_id",
    "anvil_delete_flock: flock_id* tenant_id",
    "anvil_post_townwall: agent_id* body* flock_id* tenant_id",
    "anvil_get_townwall_history: flock_id* tenant_id",
  ]);
});

test("no tool of the gateway, no broadcast, no stream, no flock snapshot and no operator's configuration is offered", () => {
  expect(names.filter((name) => !name.startsWith("anvil_") || name.includes("__"))).toEqual([]);
  expect(
    names.filter((name) => /gateway|broadcast|wall_stream|flock_snapshot|config|provider/.test(name)),
  ).toEqual([]);
});

test("the check of declarations finds what it looks for", () => {
  const odd = {
    type: "object",
    properties: {
      "a.b": { type: ["null", "string"] },
      list: { type: "array" },
      untyped: { description: "x" },
      nested: { type: "array", items: { type: "object", properties: {}, additionalProperties: false } },
    },
    required: ["c"],
  } as unknown as PortableSchema;
  expect(declarationProblems(odd, "odd")).toEqual([
    "odd: requires c, which is missing",
    "odd: name a.b",
    'odd.a.b: type ["null","string"]',
    "odd.list: no items",
    "odd.untyped: type undefined",
    "odd.nested[]: key additionalProperties",
  ]);
});
