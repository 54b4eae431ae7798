import { expect, test } from "bun:test";
import { dirname, join, normalize } from "node:path";
import { repositoryFiles } from "../support/repository-files.ts";

const MAX_LINES = 300;
const VAGUE_NAMES = /(^|\/)(utils?|helpers?|types?|index|common|misc)\.[a-z.]+$/;
const CODE = /\.(ts|c|h|cc)$/;

/** Folder of src/ → folders it may import besides itself. `main` is src/main.ts. */
const MAY_IMPORT: Record<string, string[]> = {
  main: ["cli", "config", "base"],
  cli: ["mcp", "engine", "anvil", "egress", "session", "vm", "guest", "vsock", "image", "config", "base"],
  mcp: ["session", "config", "base"],
  engine: ["egress", "session", "vm", "guest", "config", "base"],
  anvil: ["mcp", "session", "config", "base"],
  session: ["vm", "guest", "config", "base"],
  vm: ["egress", "guest", "vsock", "image", "config", "base"],
  guest: ["vsock", "config", "base"],
  vsock: ["config", "base"],
  egress: ["base"],
  config: ["image", "base"],
  image: ["base"],
  base: [],
};

const sources = repositoryFiles("src").filter((file) => file.path.endsWith(".ts"));
const imports = new Map(sources.map((file) => [file.path, importedPaths(file.path, file.text)]));

/** Imports of other files of ours, type-only ones included, as paths relative to the repository. */
function importedPaths(path: string, text: string): string[] {
  const withTypes = text.replace(/^(import type\b|export type(?= [{*]))/gm, (start) => start.slice(0, 6));
  const found = new Bun.Transpiler({ loader: "ts" }).scanImports(withTypes);
  return found
    .map((entry) => entry.path)
    .filter((target) => target.startsWith("."))
    .map((target) => normalize(join(dirname(path), target)));
}

function layerOf(path: string): string {
  const [, folder = "", rest] = path.split("/");
  return rest === undefined ? folder.replace(/\.ts$/, "") : folder;
}

/** Why the import is not allowed, or null. */
function violation(from: string, to: string): string | null {
  if (!to.startsWith("src/"))
    return to.endsWith("package.json") || to.endsWith(".node") ? null : `${from} imports ${to}`;
  const [source, target] = [layerOf(from), layerOf(to)];
  if (source === target || MAY_IMPORT[source]?.includes(target)) return null;
  return `${source} must not import ${target}: ${from} → ${to}`;
}

/** The first cycle reachable from a file, as the list of its files; null when there is none. */
function findCycle(
  path: string,
  trail: string[],
  done: Set<string>,
  graph: Map<string, string[]>,
): string[] | null {
  if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path];
  if (done.has(path)) return null;
  for (const next of graph.get(path) ?? []) {
    const cycle = findCycle(next, [...trail, path], done, graph);
    if (cycle !== null) return cycle;
  }
  done.add(path);
  return null;
}

function cycleIn(graph: Map<string, string[]>): string[] | null {
  const done = new Set<string>();
  for (const path of graph.keys()) {
    const cycle = findCycle(path, [], done, graph);
    if (cycle !== null) return cycle;
  }
  return null;
}

test("every folder of src has its place in the order of layers", () => {
  const unknown = sources.map((file) => layerOf(file.path)).filter((layer) => !(layer in MAY_IMPORT));
  expect(unknown).toEqual([]);
});

test("imports point one way, from requests to machines", () => {
  const violations = [...imports].flatMap(([from, targets]) => targets.map((to) => violation(from, to)));
  expect(violations.filter((text) => text !== null)).toEqual([]);
});

test("no file imports itself through others", () => {
  expect(cycleIn(imports)).toBeNull();
});

test("the checks above see type-only, dynamic and unused imports, wrong directions and cycles", () => {
  const text = 'import type { A } from "../vm/a.ts";\nimport { B } from "./b.ts";\nawait import("./c.ts");';
  expect(importedPaths("src/mcp/x.ts", text)).toEqual(["src/vm/a.ts", "src/mcp/b.ts", "src/mcp/c.ts"]);
  expect(violation("src/mcp/x.ts", "src/vm/a.ts")).toContain("mcp must not import vm");
  expect(violation("src/vm/x.ts", "src/mcp/a.ts")).toContain("vm must not import mcp");
  expect(violation("src/vm/x.ts", "test/support/a.ts")).toContain("imports test/");
  const loop = new Map([
    ["a", ["b"]],
    ["b", ["c"]],
    ["c", ["b"]],
  ]);
  expect(cycleIn(loop)).toEqual(["b", "c", "b"]);
});

test("files stay short and have telling names", () => {
  const code = repositoryFiles("src", "native", "guest", "test", "scripts", "bench").filter((file) =>
    CODE.test(file.path),
  );
  const tooLong = code.filter((file) => file.text.trimEnd().split("\n").length > MAX_LINES);
  expect(tooLong.map((file) => file.path)).toEqual([]);
  expect(code.map((file) => file.path).filter((path) => VAGUE_NAMES.test(path))).toEqual([]);
});

test("TypeScript files are named in kebab-case", () => {
  const paths = repositoryFiles("src", "test", "scripts", "bench").map((file) => file.path);
  const odd = paths.filter(
    (path) => path.endsWith(".ts") && !/\/[a-z0-9]+(-[a-z0-9]+)*(\.test|\.d)?\.ts$/.test(path),
  );
  expect(odd).toEqual([]);
});
