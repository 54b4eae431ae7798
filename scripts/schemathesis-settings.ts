/** What schemathesis is told of an engine, as TOML: ids that exist, and answers that are promised though they look like failures. */
import document from "../docs/openapi.json" with { type: "json" };

/** Values of parameters, by what they are ids or names of */
export type Seeds = Record<
  "vms" | "snapshots" | "flocks" | "tenants" | "agents" | "files" | "streams",
  string[]
>;

interface Operation {
  path: string;
  method: string;
  /** As schemathesis names them, e.g. `path.id` */
  parameters: string[];
  statuses: string[];
}

export const operations: Operation[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { parameters, responses }]: [string, Described]) => ({
    path,
    method: method.toUpperCase(),
    parameters: (parameters ?? []).map((parameter) => `${parameter.in}.${parameter.name}`),
    statuses: Object.keys(responses),
  })),
);

interface Described {
  parameters?: { in: string; name: string }[];
  responses: object;
}

/** A VM that was stopped has no agent, and a task may be too deep: nothing failed. */
const PROMISED = ["502", "508"];
/** Their bodies have to fit to each other or to what exists, which no schema says. */
const REFUSING = [
  "POST /vms",
  "POST /flocks",
  "POST /flocks/{id}/agents",
  "PATCH /flocks/{id}/agents/{agent}",
  "POST /snapshots/import",
];
/** How often a parameter is one of the seeds, and not a text nobody knows */
const PROBABILITY = 0.8;

/** Every operation has these ids, and nothing else, in its path: the n-th one the n-th seed of each kind. */
export function settingsWithFixedIds(seeds: Seeds): string {
  const seedFor = (kind: keyof Seeds, at: number) => JSON.stringify(seeds[kind][at % seeds[kind].length]);
  return operations
    .map((operation, at) => {
      const paths = operation.parameters.filter((name) => name.startsWith("path."));
      return table(operation, paths, (kind) => seedFor(kind, at));
    })
    .join("\n");
}

/** Every operation draws from all seeds. */
export function settingsWithDrawnIds(seeds: Seeds): string {
  const dictionaries = Object.entries(seeds).map(
    ([kind, values]) => `[dictionaries.${kind}]\nvalues = ${JSON.stringify(values)}\n`,
  );
  const drawn = (kind: keyof Seeds) => `{ dictionary = "${kind}", probability = ${PROBABILITY} }`;
  const tables = operations.map((operation) => {
    const posts = operation.path.endsWith("/post") ? ["body.agent_id"] : [];
    return table(operation, [...operation.parameters, ...posts], drawn);
  });
  return [...dictionaries, ...tables].join("\n");
}

function table(operation: Operation, parameters: string[], valueFor: (kind: keyof Seeds) => string): string {
  const { path, method, statuses } = operation;
  const promised = ["2xx", "3xx", "4xx", ...PROMISED.filter((status) => statuses.includes(status))];
  const accepting = ["2xx", "3xx", "401", "403", "404", "409", "5xx"];
  if (REFUSING.includes(`${method} ${path}`)) accepting.push("400");
  const known = parameters.flatMap((name) => {
    const kind = kindOf(name, path);
    return kind === null ? [] : [`"${name}" = ${valueFor(kind)}`];
  });
  return [
    "[[operations]]",
    // Conditions of one table are alternatives; the name has both.
    `include-name = "${method} ${path}"`,
    "[operations.checks]",
    `not_a_server_error.expected-statuses = ${JSON.stringify(promised)}`,
    `positive_data_acceptance.expected-statuses = ${JSON.stringify(accepting)}`,
    "[operations.parameters]",
    ...known,
    "",
  ].join("\n");
}

function kindOf(parameter: string, path: string): keyof Seeds | null {
  switch (parameter) {
    case "path.id":
      return path.split("/")[1] as keyof Seeds;
    case "path.agent":
    case "body.agent_id":
      return "agents";
    case "query.path":
      return "files";
    case "query.stream":
      return "streams";
    default:
      return null;
  }
}
