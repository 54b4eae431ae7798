import { expect, test } from "bun:test";
import { join } from "node:path";
import { SETTINGS } from "../../../src/anvil/settings.ts";
import { ANVIL_TOOLS } from "../../../src/anvil/tool-list.ts";

const text = await Bun.file(join(import.meta.dir, "../../../docs/anvil.md")).text();

/** The first two cells of every table row. */
const rows = [...text.matchAll(/^\| `([^`]+)` +\| ([^|]+?) +\|/gm)].map(
  (match) => [match[1]!, match[2]!] as const,
);

test("docs/anvil.md lists every setting with its variable, and no other", () => {
  const listed = rows.filter(([, second]) => /^`ANVIL_/.test(second)).map(([key, second]) => [key, second]);
  expect(listed).toEqual(Object.entries(SETTINGS).map(([key, { variable }]) => [key, `\`${variable}\``]));
});

test("docs/anvil.md lists every tool with all its own arguments, the required ones marked", () => {
  const listed = new Map(rows.filter(([first]) => first.startsWith("anvil_")).slice(0, ANVIL_TOOLS.length));
  expect([...listed.keys()]).toEqual(ANVIL_TOOLS.map(({ document }) => document.name));
  for (const { document } of ANVIL_TOOLS) {
    const { properties, required = [] } = document.inputSchema;
    const isOnVm = "vm_id" in properties;
    const own = Object.keys(properties).filter(
      (name) => !isOnVm || !["vm_id", "session_name", "tenant_id"].includes(name),
    );
    const cells = own.map((name) => `\`${name}\`${required.includes(name) ? "\\*" : ""}`);
    const expected = [...(isOnVm ? ["VM"] : []), ...cells];
    const shown = (listed.get(document.name) ?? "").split(", ").filter((cell) => cell.trim() !== "");
    expect(shown.toSorted()).toEqual(expected.toSorted());
  }
});
