import { expect, test } from "bun:test";
import { INSTRUCTIONS } from "../../src/mcp/instructions.ts";
import type { PortableSchema } from "../../src/mcp/portable-schema.ts";
import type { ToolDocument } from "../../src/mcp/tool.ts";
import { describeTools, toolsOf } from "../../src/mcp/tool-list.ts";
import { initializedFixture } from "./fixture-client.ts";

const MAX_LIST_BYTES = 6 * 1024;
const LEAF_TYPES = ["string", "number", "integer", "boolean", "array", "object"];
const KEYWORDS = ["type", "description", "properties", "required", "items", "minimum", "maximum", "enum"];

const documents = describeTools({ idleMs: 600_000, net: false, egress: { kind: "deny_all" }, tools: "all" });
const coreDocuments = describeTools({
  idleMs: 600_000,
  net: false,
  egress: { kind: "deny_all" },
  tools: "core",
});

/** What some client's converter would refuse, as `path: reason`. */
function portabilityProblems(schema: PortableSchema, path: string): string[] {
  const problems = Object.keys(schema)
    .filter((keyword) => !KEYWORDS.includes(keyword))
    .map((keyword) => `${path}: keyword ${keyword}`);
  if (!LEAF_TYPES.includes(schema.type)) problems.push(`${path}: type ${schema.type}`);
  if ("enum" in schema && !schema.enum?.every((value) => typeof value === "string"))
    problems.push(`${path}: enum`);
  if (schema.type === "array") return [...problems, ...portabilityProblems(schema.items, `${path}[]`)];
  if (schema.type !== "object") return problems;
  const missing = (schema.required ?? []).filter((name) => !(name in schema.properties));
  const inside = Object.entries(schema.properties).flatMap(([name, property]) => [
    ...(/^[a-z][a-z0-9_]{0,23}$/.test(name) ? [] : [`${path}: name ${name}`]),
    ...portabilityProblems(property, `${path}.${name}`),
  ]);
  return [...problems, ...missing.map((name) => `${path}: requires ${name}, which is missing`), ...inside];
}

// After a change that is meant: bun test --update-snapshots test/contract/tool-list.test.ts
test.each(["core", "all"] as const)(
  "tools/list of %s is the committed document, byte for byte, and small",
  async (set) => {
    await using server = await initializedFixture(set);
    server.send({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const answer = await server.next();
    expect(JSON.stringify(answer["result"], null, 2)).toMatchSnapshot();
    expect(Buffer.byteLength(JSON.stringify(answer))).toBeLessThan(MAX_LIST_BYTES);
  },
);

test("names are short and plain, and each tool is listed under the name it is called by", () => {
  for (const { name } of documents) expect(name).toMatch(/^[a-z][a-z_]{0,23}$/);
  expect(documents.map((tool) => tool.name)).toEqual([...toolsOf("all").keys()]);
});

test("the five tools come first in both sets, and at most five more with them", () => {
  const five = ["open_session", "run", "write_file", "reset", "close"];
  expect([...toolsOf("core").keys()]).toEqual(five);
  expect([...toolsOf("all").keys()].slice(0, 5)).toEqual(five);
  expect(toolsOf("all").size).toBeLessThanOrEqual(10);
});

test.each([...coreDocuments, ...documents].map((tool) => [tool.name, tool] as const))(
  "%s keeps to the portable schema",
  (_name, tool) => {
    for (const schema of [tool.inputSchema, tool.outputSchema ?? tool.inputSchema]) {
      expect(schema.type).toBe("object");
      expect(portabilityProblems(schema, tool.name)).toEqual([]);
    }
  },
);

test("every argument and tool is described", () => {
  const undescribed = documents.flatMap((tool: ToolDocument) =>
    Object.entries(tool.inputSchema.properties)
      .filter(([, property]) => !property.description)
      .map(([name]) => `${tool.name}.${name}`),
  );
  expect(undescribed).toEqual([]);
  for (const tool of documents) expect(tool.description.length).toBeGreaterThan(20);
});

test("no result field is required, since clients hold failed calls against the same schema", () => {
  for (const { outputSchema } of [...coreDocuments, ...documents])
    expect(outputSchema?.required).toBeUndefined();
  for (const { outputSchema } of coreDocuments) expect(outputSchema).toBeDefined();
});

test("the portability check finds what it looks for", () => {
  const odd = {
    type: "object",
    properties: { "a.b": { type: "string", default: "x" }, list: { type: "array", items: { type: "null" } } },
    required: ["c"],
  } as unknown as PortableSchema;
  expect(portabilityProblems(odd, "odd")).toEqual([
    "odd: requires c, which is missing",
    "odd: name a.b",
    "odd.a.b: keyword default",
    "odd.list[]: type null",
  ]);
});

test("descriptions and hints follow the configuration", () => {
  const denied = { kind: "deny_all" } as const;
  const [open, run] = describeTools({ idleMs: 90_000, net: true, egress: denied, tools: "core" });
  expect(open?.description).toContain("Closed after 90 s without a call. It has a network.");
  expect(run?.annotations.openWorldHint).toBe(true);
  expect(documents[0]?.description).toContain("Closed after 10 min without a call. It has no network.");
  expect(documents[1]?.annotations.openWorldHint).toBe(false);
});

test.each([
  ["profile", "Listed hosts are reachable, only by proxy ($https_proxy)."],
  ["allow_all", "The internet is reachable, only by proxy ($https_proxy)."],
] as const)("of egress %s it says how, and the list stays small", (kind, sentence) => {
  const [open, run, ...more] = describeTools({ idleMs: 600_000, net: false, egress: { kind }, tools: "all" });
  expect(open?.description).toEndWith(sentence);
  expect(run?.annotations.openWorldHint).toBe(true);
  expect(Buffer.byteLength(JSON.stringify({ tools: [open, run, ...more] }))).toBeLessThan(MAX_LIST_BYTES);
});

test("the instructions are four sentences at most", () => {
  expect(INSTRUCTIONS.split(/(?<=\.) /).length).toBeLessThanOrEqual(4);
});
