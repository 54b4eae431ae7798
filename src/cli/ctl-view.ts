import { formatTable } from "./table.ts";

/** Turns an answer's JSON into lines for a person. */
export type View = (answer: unknown) => string;

type Column = readonly [title: string, member: string];

/** A row for each element; a member may be a path such as "stats.cpu_percent". */
export function tableView(none: string, ...columns: readonly Column[]): View {
  return (answer) => {
    const rows = Array.isArray(answer) ? answer : [];
    if (rows.length === 0) return none;
    const cells = rows.map((row) => columns.map(([, member]) => lineOf(memberAt(row, member))));
    return formatTable([columns.map(([title]) => title), ...cells]);
  };
}

/** A line for each member, the hidden ones left out. */
export function recordView(...hidden: readonly string[]): View {
  return (answer) => {
    if (!isRecord(answer)) return cellOf(answer);
    const shown = Object.entries(answer).filter(([name]) => !hidden.includes(name));
    return formatTable(shown.map(([name, value]) => [lineOf(name), lineOf(value)]));
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

/** What a broadcast came to, and each agent's answer in a row. */
export const broadcastView: View = (answer) => {
  const results = isRecord(answer) && isRecord(answer["results"]) ? answer["results"] : {};
  const rows = Object.entries(results).map(([agent_id, result]) => ({ agent_id, result }));
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
export function wallLine(message: unknown): string {
  const body = cellOf(memberAt(message, "body")).split("\n").map(printable).join("\n    ");
  return `${lineOf(memberAt(message, "timestamp"))} ${lineOf(memberAt(message, "agent_id"))}: ${body}`;
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

/** On one line. */
function lineOf(value: unknown): string {
  return printable(
    cellOf(value)
      .trim()
      .replace(/\s*\n\s*/g, " "),
  );
}

/** Guests and agents write some of what is shown: they must not get to steer the terminal. */
function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is to be found
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "\ufffd");
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
