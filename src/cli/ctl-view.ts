import { formatTable } from "./table.ts";

/** Turns an answer's JSON into lines for a person. */
export type View = (answer: unknown) => string;

type Column = readonly [title: string, member: string];

/** A row for each element; a member may be a path such as "stats.cpu_percent". */
export function tableView(none: string, ...columns: readonly Column[]): View {
  return (answer) => {
    const rows = Array.isArray(answer) ? answer : [];
    if (rows.length === 0) return none;
    const cells = rows.map((row) => columns.map(([, member]) => cellOf(memberAt(row, member))));
    return formatTable([columns.map(([title]) => title), ...cells]);
  };
}

/** A line for each member, the hidden ones left out. */
export function recordView(...hidden: readonly string[]): View {
  return (answer) => {
    if (!isRecord(answer)) return cellOf(answer);
    const shown = Object.entries(answer).filter(([name]) => !hidden.includes(name));
    return formatTable(shown.map(([name, value]) => [name, cellOf(value)]));
  };
}

/** One member alone, without the line break at its end. */
export function memberView(member: string): View {
  return (answer) => cellOf(memberAt(answer, member)).replace(/\n$/, "");
}

/** A flock's members, then its agents as a table. */
export const flockView: View = (answer) => {
  const agents = isRecord(answer) ? answer["agents"] : null;
  const list = isRecord(agents) ? Object.values(agents) : agents;
  return `${recordView("agents")(answer)}\n\n${AGENTS(list)}`;
};

const AGENTS = tableView(
  "No agents.",
  ["AGENT", "agent_id"],
  ["ROLE", "role"],
  ["VM", "vm_id"],
  ["STATUS", "status"],
);

/** A message on a Town Wall, as it is told. */
export function wallLine(message: unknown): string {
  const told = (member: string) => cellOf(memberAt(message, member));
  return `${told("timestamp")} ${told("agent_id")}: ${told("body")}`;
}

export const wallView: View = (answer) =>
  Array.isArray(answer) && answer.length > 0 ? answer.map(wallLine).join("\n") : "No messages.";

function memberAt(value: unknown, path: string): unknown {
  return path.split(".").reduce((inside, name) => (isRecord(inside) ? inside[name] : undefined), value);
}

function cellOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
