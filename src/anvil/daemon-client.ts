import * as z from "zod";
import { parseJson } from "../base/parse-json.ts";
import { AdapterError, DaemonError } from "./adapter-error.ts";
import {
  createdFlockReply,
  flockReply,
  restoredVmReply,
  snapshotReply,
  vmReply,
  wallMessageReply,
} from "./daemon-replies.ts";
import { redactAgentTokens } from "./redact-agent-tokens.ts";
import { type DaemonRequest, type DaemonTarget, sendRequest } from "./send-request.ts";

/** An answer passed on as it came. */
export type RawReply = {
  status_code: number;
  body: string;
};

export interface VmRequest {
  profile: string;
  tenantId: string;
  egressPolicy: string;
}

export interface FlockRequest {
  task: string;
  roles: readonly string[];
  tenantId: string;
  egressPolicy: string;
}

export interface SnapshotRequest {
  stopAfter: boolean;
  type: string;
  tenantId: string;
}

/**
 * The daemon's HTTP API, one method for each request the tools make. Rejects with `DaemonError` for an answer that is
 * not 2xx, and with `AdapterError` when there is none or it is not what is documented.
 */
export class DaemonClient {
  readonly #target: DaemonTarget;

  constructor(target: DaemonTarget) {
    this.#target = target;
  }

  createVm({ profile, tenantId, egressPolicy }: VmRequest, signal: AbortSignal) {
    const body = { profile, tenant_id: tenantId, egress_policy: egressPolicy };
    return this.#json(vmReply, jsonRequest("POST", "/vms", body, signal));
  }

  runTask(vmId: string, prompt: string, signal: AbortSignal): Promise<RawReply> {
    return this.#raw(jsonRequest("POST", `${vmPath(vmId)}/tasks`, { prompt }, signal));
  }

  copyIn(vmId: string, path: string, content: Uint8Array, overwrite: boolean, signal: AbortSignal) {
    const query = `path=${encodeURIComponent(path)}${overwrite ? "&overwrite=true" : ""}`;
    return this.#raw({
      method: "PUT",
      path: `${vmPath(vmId)}/workspace?${query}`,
      contentType: "application/octet-stream",
      body: content,
      signal,
    });
  }

  async copyOut(vmId: string, path: string, signal: AbortSignal): Promise<Uint8Array> {
    const query = `path=${encodeURIComponent(path)}`;
    return (await this.#send({ method: "GET", path: `${vmPath(vmId)}/workspace?${query}`, signal })).body;
  }

  health(vmId: string, signal: AbortSignal): Promise<RawReply> {
    return this.#raw({ method: "GET", path: `${vmPath(vmId)}/health`, signal });
  }

  stop(vmId: string, signal: AbortSignal): Promise<RawReply> {
    return this.#raw({ method: "POST", path: `${vmPath(vmId)}/stop`, signal });
  }

  deleteVm(vmId: string, signal: AbortSignal): Promise<RawReply> {
    return this.#raw({ method: "DELETE", path: vmPath(vmId), signal });
  }

  createSnapshot(vmId: string, { stopAfter, type, tenantId }: SnapshotRequest, signal: AbortSignal) {
    const body = { stop_after: stopAfter, type, tenant_id: tenantId };
    return this.#json(snapshotReply, jsonRequest("POST", `${vmPath(vmId)}/snapshot`, body, signal));
  }

  listSnapshots(signal: AbortSignal) {
    return this.#json(listOf(snapshotReply), { method: "GET", path: "/snapshots", signal });
  }

  restoreSnapshot(
    snapshotId: string,
    { tenantId, egressPolicy }: Omit<VmRequest, "profile">,
    signal: AbortSignal,
  ) {
    const body = { tenant_id: tenantId, egress_policy: egressPolicy };
    return this.#json(
      restoredVmReply,
      jsonRequest("POST", `${snapshotPath(snapshotId)}/restore`, body, signal),
    );
  }

  deleteSnapshot(snapshotId: string, signal: AbortSignal): Promise<RawReply> {
    return this.#raw({ method: "DELETE", path: snapshotPath(snapshotId), signal });
  }

  createFlock({ task, roles, tenantId, egressPolicy }: FlockRequest, signal: AbortSignal) {
    const body = { task, roles, tenant_id: tenantId, egress_policy: egressPolicy };
    return this.#json(createdFlockReply, jsonRequest("POST", "/flocks", body, signal));
  }

  listFlocks(signal: AbortSignal) {
    return this.#json(listOf(flockReply), { method: "GET", path: "/flocks", signal });
  }

  getFlock(flockId: string, signal: AbortSignal) {
    return this.#json(flockReply, { method: "GET", path: flockPath(flockId), signal });
  }

  deleteFlock(flockId: string, signal: AbortSignal): Promise<RawReply> {
    return this.#raw({ method: "DELETE", path: flockPath(flockId), signal });
  }

  postTownWall(flockId: string, agentId: string, body: string, signal: AbortSignal) {
    const message = { agent_id: agentId, body };
    return this.#json(wallMessageReply, jsonRequest("POST", `${flockPath(flockId)}/post`, message, signal));
  }

  townWallHistory(flockId: string, signal: AbortSignal) {
    return this.#json(listOf(wallMessageReply), {
      method: "GET",
      path: `${flockPath(flockId)}/wall/history`,
      signal,
    });
  }

  async #send(request: DaemonRequest): Promise<{ status: number; body: Uint8Array }> {
    const reply = await sendRequest(this.#target, request);
    if (reply.status >= 200 && reply.status < 300) return reply;
    throw new DaemonError(reply.status, toText(reply.body));
  }

  async #raw(request: DaemonRequest): Promise<RawReply> {
    const { status, body } = await this.#send(request);
    return { status_code: status, body: toText(body) };
  }

  async #json<Schema extends z.ZodType>(schema: Schema, request: DaemonRequest): Promise<z.output<Schema>> {
    const { status, body } = await this.#send(request);
    const parsed = schema.safeParse(parseJson(toText(body)));
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    const place =
      issue && issue.path.length > 0 ? `${issue.path.join(".")}: ${issue.message}` : "no such JSON";
    throw new AdapterError(
      "bad_reply",
      `The daemon answered ${request.method} ${request.path} with status ${status}, but not as documented (${place}). Check that daemon_url leads to an ignition-mcp daemon.`,
    );
  }
}

/** Go's daemon writes null for an empty list. */
function listOf<Schema extends z.ZodType>(schema: Schema) {
  return z
    .array(schema)
    .nullable()
    .transform((list) => list ?? []);
}

/** Members that are empty texts are left out. */
function jsonRequest(
  method: DaemonRequest["method"],
  path: string,
  members: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): DaemonRequest {
  const body = Object.fromEntries(Object.entries(members).filter(([, value]) => value !== ""));
  return { method, path, contentType: "application/json", body: JSON.stringify(body), signal };
}

function vmPath(vmId: string): string {
  return `/vms/${encodeURIComponent(vmId)}`;
}

function snapshotPath(snapshotId: string): string {
  return `/snapshots/${encodeURIComponent(snapshotId)}`;
}

function flockPath(flockId: string): string {
  return `/flocks/${encodeURIComponent(flockId)}`;
}

function toText(bytes: Uint8Array): string {
  return redactAgentTokens(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes));
}
