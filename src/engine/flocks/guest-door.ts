import { EngineError } from "../engine-error.ts";
import type { EngineVm } from "../vms/engine-vm.ts";
import { guestPostRequest } from "./flock-request.ts";
import type { Flocks } from "./flocks.ts";

const POST_PATH = "/townwall/post";

/**
 * What http://ignition.internal answers a guest: `POST /townwall/post {"body": …}` posts on the wall of the flock it
 * belongs to. Who writes is known from the VM the connection came from, whatever the request says. Null for other paths.
 */
export async function answerGuest(flocks: Flocks, vm: EngineVm, request: Request): Promise<Response | null> {
  if (new URL(request.url).pathname !== POST_PATH) return null;
  if (request.method !== "POST")
    return new Response("method not allowed", { status: 405, headers: { allow: "POST" } });
  try {
    return Response.json(await post(flocks, vm, request));
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const { status, body } = error;
    return typeof body === "string" ? new Response(body, { status }) : Response.json(body, { status });
  }
}

async function post(flocks: Flocks, vm: EngineVm, request: Request) {
  const { flock_id: flockId, agent_id: agentId } = vm.record;
  if (flockId === undefined || agentId === undefined) throw refused(404, "this VM belongs to no flock");
  const flock = flocks.get(flockId);
  if (flock.record.agents[agentId]?.vm_id !== vm.id) throw refused(403, "this VM is no member of its flock");
  const parsed = guestPostRequest.safeParse(await bodyOf(request));
  if (!parsed.success) throw refused(400, "body required");
  return await flock.post(agentId, parsed.data.body);
}

/** Undefined for what is no JSON. */
async function bodyOf(request: Request): Promise<unknown> {
  try {
    return await request.json();
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function refused(status: 400 | 403 | 404, text: string): EngineError {
  return new EngineError(status, "refused", { error: text });
}
