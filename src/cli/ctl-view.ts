import { printable } from "./printable.ts";
import { formatTable } from "./table.ts";

/** Turns an answer into lines for a person: its JSON, or else its text. Null when it is not the one that was asked for. */
export type View = (answer: unknown) => string | null;

type Column = readonly [title: string, member: string];

/** A row for each element; a member may be a path such as "stats.cpu_percent". */
export function tableView(none: string, ...columns: readonly Column[]): View {
  return (answer) => {
    const rows = listIn(answer);
    if (rows === null) return null;
    if (rows.length === 0) return none;
    const cells = rows.map((row) => columns.map(([, member]) => lineOf(memberAt(row, member))));
    return formatTable([columns.map(([title]) => title), ...cells]);
  };
}

/** A line for each member, the hidden ones left out. */
export function recordView(...hidden: readonly string[]): View {
  return (answer) => {
    if (!isRecord(answer)) return null;
    const shown = Object.entries(answer).filter(([name]) => !hidden.includes(name));
    return formatTable(shown.map(([name, value]) => [lineOf(name), lineOf(value)]));
  };
}

/** One member alone, without the line break at its end. */
export function memberView(member: string): View {
  return (answer) => {
    const value = memberAt(answer, member);
    return value === undefined ? null : cellOf(value).replace(/\n$/, "");
  };
}

/** A flock's members, then its agents as a table. */
export const flockView: View = (answer) => {
  if (!isRecord(answer)) return null;
  const { agents } = answer;
  const list = AGENTS(isRecord(agents) ? Object.values(agents) : agents);
  return list === null ? null : `${recordView("agents")(answer)}\n\n${list}`;
};

const AGENTS = tableView(
  "No agents.",
  ["AGENT", "agent_id"],
  ["ROLE", "role"],
  ["VM", "vm_id"],
  ["STATUS", "status"],
);

/** What a broadcast came to, and each agent's answer in a row. */
export const broadcastView: View = (answer) => {
  if (!isRecord(answer) || !isRecord(answer["results"])) return null;
  const rows = Object.entries(answer["results"]).map(([agent_id, result]) => ({ agent_id, result }));
  return `${recordView("results")(answer)}\n\n${RESULTS(rows)}`;
};

const RESULTS = tableView(
  "No agents.",
  ["AGENT", "agent_id"],
  ["STATUS", "result.status"],
  ["OUTPUT", "result.output"],
  ["ERROR", "result.error"],
);

/** A message on a Town Wall. Its further lines are set in, so that none of them looks like another message. */
export const wallLine: View = (message) => {
  if (memberAt(message, "body") === undefined) return null;
  const body = cellOf(memberAt(message, "body")).split("\n").map(printable).join("\n    ");
  return `${lineOf(memberAt(message, "timestamp"))} ${lineOf(memberAt(message, "agent_id"))}: ${body}`;
};

export const wallView: View = (answer) => {
  const lines = listIn(answer)?.map(wallLine) ?? [null];
  if (lines.includes(null)) return null;
  return lines.length === 0 ? "No messages." : lines.join("\n");
};

/** Prometheus' text format, as it came. */
export const metricsView: View = (answer) =>
  typeof answer === "string" && /^[#a-zA-Z_:]/.test(answer) ? answer : null;

/** Go's daemon writes null for an empty list. */
function listIn(answer: unknown): unknown[] | null {
  return answer === null ? [] : Array.isArray(answer) ? answer : null;
}

function memberAt(value: unknown, path: string): unknown {
  return path.split(".").reduce((inside, name) => (isRecord(inside) ? inside[name] : undefined), value);
}

function cellOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** On one line. */
function lineOf(value: unknown): string {
  return printable(
    cellOf(value)
      .trim()
      .replace(/\s*\n\s*/g, " "),
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
