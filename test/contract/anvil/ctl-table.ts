/** Each form of a ctl command, and the request it makes. */
export const COMMANDS: [args: string[], request: string, body: unknown][] = [
  [["vm", "spawn"], "POST /vms", {}],
  [
    ["vm", "spawn", "--profile", "dev", "--tenant", "t", "--egress", "deny_all"],
    "POST /vms",
    { profile: "dev", tenant_id: "t", egress_policy: "deny_all" },
  ],
  [["vm", "ls"], "GET /vms", null],
  [["vm", "ls", "--stats"], "GET /vms?stats=true", null],
  [["vm", "rm", "vm-1"], "DELETE /vms/vm-1", null],
  [["vm", "health", "vm-1"], "GET /vms/vm-1/health", null],
  [["vm", "stop", "vm-1"], "POST /vms/vm-1/stop", null],
  [["vm", "stats", "vm-1"], "GET /vms/vm-1/stats", null],
  [["vm", "task", "vm-1", "echo", "hi"], "POST /vms/vm-1/tasks", { prompt: "echo hi" }],
  [["vm", "snapshot", "vm-1"], "POST /vms/vm-1/snapshot", { stop_after: false }],
  [
    ["vm", "snapshot", "vm-1", "--stop-after", "--type", "diff"],
    "POST /vms/vm-1/snapshot",
    { stop_after: true, type: "diff" },
  ],
  [["vm", "forward", "vm-1", "80"], "POST /vms/vm-1/forwards", { guest_port: 80 }],
  [
    ["vm", "forward", "vm-1", "80", "--host-port", "8080"],
    "POST /vms/vm-1/forwards",
    { guest_port: 80, host_port: 8080 },
  ],
  [["vm", "forwards", "vm-1"], "GET /vms/vm-1/forwards", null],
  [["vm", "unforward", "vm-1", "8080"], "DELETE /vms/vm-1/forwards/8080", null],
  [
    ["flock", "create", "--task", "ship", "--roles", "a,b"],
    "POST /flocks",
    { task: "ship", roles: ["a", "b"] },
  ],
  [["flock", "ls"], "GET /flocks", null],
  [["flock", "get", "f"], "GET /flocks/f", null],
  [["flock", "rm", "f"], "DELETE /flocks/f", null],
  [
    ["flock", "post", "f", "--agent", "a-1", "--body", "hi"],
    "POST /flocks/f/post",
    { agent_id: "a-1", body: "hi" },
  ],
  [["flock", "wall", "f", "--history"], "GET /flocks/f/wall/history", null],
  [["flock", "restart", "f", "a-1"], "POST /flocks/f/agents/a-1/restart", null],
  [["flock", "add-agent", "f", "--role", "a"], "POST /flocks/f/agents", { role: "a" }],
  [["flock", "rm-agent", "f", "a-1"], "DELETE /flocks/f/agents/a-1", null],
  [
    ["flock", "set-role", "f", "a-1", "--role", "b", "--profile", "p"],
    "PATCH /flocks/f/agents/a-1",
    { role: "b", profile: "p" },
  ],
  [["flock", "pause", "f"], "POST /flocks/f/pause", null],
  [["flock", "resume", "f"], "POST /flocks/f/resume", null],
  [["flock", "broadcast", "f", "--body", "go"], "POST /flocks/f/broadcast", { body: "go" }],
  [["snapshot", "ls"], "GET /snapshots", null],
  [["snapshot", "restore", "s"], "POST /snapshots/s/restore", {}],
  [["snapshot", "rm", "s"], "DELETE /snapshots/s", null],
  [["audit"], "GET /audit", null],
  [
    ["audit", "--limit", "5", "--client", "a b", "--status", "404", "--method", "GET"],
    "GET /audit?limit=5&client=a%20b&status=404&method=GET",
    null,
  ],
  [["metrics"], "GET /metrics", null],
  [["metrics", "--json"], "GET /metrics/vms", null],
];

/** The least that each command can take for its answer. */
export function fittingAnswer(method: string, path: string): Response {
  const route = `${method} ${path}`;
  if (route === "GET /metrics") return new Response("# HELP a b\n");
  if (/^GET .*\/(vms|flocks|snapshots|audit|forwards|history)(\?|$)/.test(route)) return Response.json([]);
  return Response.json({ output: "", body: "", agents: [], results: {} });
}
