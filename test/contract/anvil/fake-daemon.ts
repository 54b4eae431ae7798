/** One request as it came. */
export interface SeenRequest {
  method: string;
  /** Path and query, escaped as sent */
  path: string;
  authorization: string | null;
  contentType: string | null;
  body: string;
}

type Answer = (request: SeenRequest) => Response | null | Promise<Response | null>;

export const AGENT_TOKEN = "f00dfeed".repeat(8);

/**
 * The daemon's API without VMs: documented answers, each with an agent_token where the real one has it or must not
 * have it. Every request is kept. `answer` comes first and may return null to leave it to the documented answers.
 */
export class FakeDaemon implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  /** `METHOD path` of each request whose client left before it was answered */
  readonly abandoned: string[] = [];
  answer: Answer = () => null;
  readonly #server;
  #made = 0;

  constructor(listen: { unix: string } | { port: number } = { port: 0 }) {
    const handler = { fetch: (request: Request) => this.#serve(request), idleTimeout: 0 };
    this.#server =
      "unix" in listen
        ? Bun.serve({ ...listen, fetch: handler.fetch })
        : Bun.serve({ ...listen, ...handler });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  /** `METHOD path` of each request */
  get lines(): string[] {
    return this.requests.map(({ method, path }) => `${method} ${path}`);
  }

  get last(): SeenRequest {
    const last = this.requests.at(-1);
    if (last === undefined) throw new Error("the daemon has seen no request");
    return last;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }

  async #serve(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const seen: SeenRequest = {
      method: request.method,
      path: pathname + search,
      authorization: request.headers.get("authorization"),
      contentType: request.headers.get("content-type"),
      body: await request.text(),
    };
    this.requests.push(seen);
    request.signal.addEventListener("abort", () => this.abandoned.push(`${seen.method} ${seen.path}`));
    return (await this.answer(seen)) ?? this.#documented(seen, pathname);
  }

  /** From now on no request is answered. Resolves when the first of them is there. */
  fallSilent(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.answer = () => {
      resolve();
      return new Promise(() => {});
    };
    return promise;
  }

  #documented(seen: SeenRequest, pathname: string): Response {
    const given = parseObject(seen.body);
    const route = `${seen.method} ${pathname.replace(/(?<=\/(?:vms|snapshots|flocks)\/)[^/]+/, "*")}`;
    switch (route) {
      case "POST /vms":
        return Response.json(this.#vm(given), { status: 201 });
      case "GET /vms":
        return Response.json([{ vm_id: "vm-1", profile: "shell" }]);
      case "POST /vms/*/tasks":
        return Response.json({ output: "anvil-smoke-ok\n" });
      case "PUT /vms/*/workspace":
        return Response.json({ path: "notes/task.txt", bytes: seen.body.length });
      case "GET /vms/*/workspace":
        return new Response("file content", { headers: { "content-type": "application/octet-stream" } });
      case "GET /vms/*/health":
        return Response.json({ status: "idle" });
      case "GET /vms/*/stats":
        return Response.json({ vm_id: "vm-1", agent_busy: false });
      case "POST /vms/*/stop":
        return Response.json({ status: "stopping" });
      case "DELETE /vms/*":
        return Response.json({ status: "stopped", vm_id: pathname.split("/")[2] });
      case "POST /vms/*/snapshot":
        return Response.json(snapshot(given), { status: 201 });
      case "GET /snapshots":
        return Response.json([snapshot({})]);
      case "POST /snapshots/*/restore":
        return Response.json(
          { ...this.#vm(given), source_snapshot_id: pathname.split("/")[2] },
          { status: 201 },
        );
      case "DELETE /snapshots/*":
        return Response.json({ status: "deleted" });
      case "POST /flocks":
        return Response.json(createdFlock(given), { status: 201 });
      case "GET /flocks":
        return Response.json([flock()]);
      case "GET /flocks/*":
        return Response.json(flock());
      case "DELETE /flocks/*":
        return Response.json({ status: "deleted", flock_id: "flock-1" });
      case "POST /flocks/*/post":
        return Response.json({ seq: 7, timestamp: "2026-07-11T00:00:00Z", ...given });
      case "GET /flocks/*/wall/history":
        return Response.json([
          { seq: 1, timestamp: "2026-07-11T00:00:00Z", agent_id: "worker-1", body: "hello" },
        ]);
      default:
        return new Response("404 page not found\n", { status: 404 });
    }
  }

  #vm(given: Record<string, unknown>): Record<string, unknown> {
    this.#made += 1;
    const vm_id = `vm-${this.#made}`;
    const made = {
      vm_id,
      guest_ip: "10.0.1.2",
      agent_url: `http://127.0.0.1/vms/${vm_id}`,
      agent_token: AGENT_TOKEN,
    };
    return { ...made, profile: "", ...given };
  }
}

function snapshot(given: Record<string, unknown>): Record<string, unknown> {
  return {
    snapshot_id: "snap-1",
    source_vm_id: "vm-1",
    profile: "dev",
    snapshot_type: given["type"] ?? "full",
    base_snapshot_id: "",
    created_at: "2026-07-11T00:00:00Z",
    agent_token: AGENT_TOKEN,
  };
}

function agent(): Record<string, unknown> {
  const place = { vm_id: "vm-9", agent_url: "http://127.0.0.1/vms/vm-9", status: "ready" };
  return { agent_id: "worker-1", role: "worker", ...place, agent_token: AGENT_TOKEN };
}

function createdFlock(given: Record<string, unknown>): Record<string, unknown> {
  return {
    flock_id: "flock-1",
    ...given,
    agents: [agent()],
    agent_tokens: { "worker-1": AGENT_TOKEN },
    townwall_url: "http://127.0.0.1/flocks/flock-1/wall",
    post_url: "http://127.0.0.1/flocks/flock-1/post",
  };
}

function flock(): Record<string, unknown> {
  const more = { max_agents: 20, paused: false, agent_tokens: { "worker-1": AGENT_TOKEN } };
  return {
    flock_id: "flock-1",
    task: "ship it",
    agents: { "worker-1": agent() },
    created_at: "2026-07-11T00:00:00Z",
    ...more,
  };
}

/** Empty for a body that is no JSON object. */
function parseObject(text: string): Record<string, unknown> {
  try {
    return text === "" ? {} : JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}
