import { AdapterError } from "./adapter-error.ts";
import { Deadline } from "./deadline.ts";
import { requestLimitMs } from "./request-limit.ts";

const MAX_BODY_BYTES = 64 * 1_048_576;

/** Where a daemon listens and what it knows us by. */
export interface DaemonTarget {
  /** Without a slash at its end */
  baseUrl: string;
  token: string | null;
  /** Socket to connect to instead of the URL's host */
  socketPath?: string;
}

export interface DaemonRequest {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query, all parts of it escaped */
  path: string;
  contentType?: string;
  body?: string | Uint8Array;
  signal: AbortSignal;
}

/** Sends one request; resolves as soon as the daemon starts to answer, whatever the status. */
export async function startRequest(target: DaemonTarget, request: DaemonRequest): Promise<Response> {
  const headers = new Headers();
  if (target.token !== null) headers.set("Authorization", `Bearer ${target.token}`);
  if (request.contentType !== undefined) headers.set("Content-Type", request.contentType);
  const options: BunFetchRequestInit & { timeout: false } = {
    method: request.method,
    headers,
    ...(request.body !== undefined && { body: request.body }),
    ...(target.socketPath !== undefined && { unix: target.socketPath }),
    signal: request.signal,
    redirect: "manual", // the token is for this daemon only
    proxy: false,
    timeout: false, // a task may be silent for a day; the signal bounds it
  };
  try {
    return await fetch(target.baseUrl + request.path, options);
  } catch (error) {
    throw describeFailure(target, request, error);
  }
}

/** The same, with the whole body, in time. Throws `AdapterError` when there is no answer or it is cut short. */
export async function sendRequest(
  target: DaemonTarget,
  request: DaemonRequest,
): Promise<{ status: number; body: Uint8Array }> {
  const limitMs = requestLimitMs(request.method, request.path);
  using deadline = new Deadline(
    limitMs,
    `no answer within ${limitMs / 1000} s, which is longer than a daemon takes. Look whether it hangs.`,
  );
  const bounded = { ...request, signal: AbortSignal.any([request.signal, deadline.signal]) };
  const response = await startRequest(target, bounded);
  try {
    return { status: response.status, body: await readBounded(response, request) };
  } catch (error) {
    if (error instanceof AdapterError) throw error;
    throw describeFailure(target, bounded, error);
  }
}

/** The body of an answer, unless it is too long. */
export async function readBounded(
  response: Response,
  { method, path }: Pick<DaemonRequest, "method" | "path">,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of response.body ?? []) {
    sizeBytes += chunk.length;
    if (sizeBytes > MAX_BODY_BYTES) {
      const limit = `more than ${MAX_BODY_BYTES} bytes`;
      throw new AdapterError(
        "bad_reply",
        `The daemon answered ${method} ${path} with ${limit}, which is too long.`,
      );
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function describeFailure(target: DaemonTarget, request: DaemonRequest, error: unknown): AdapterError {
  const where = target.socketPath ?? target.baseUrl;
  return new AdapterError(
    "daemon_unreachable",
    `send daemon request: ${request.method} ${request.path} to ${where}: ${causeOf(error, request.signal)}`,
    error,
  );
}

function causeOf(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) {
    const reason: unknown = signal.reason;
    return reason instanceof Error && reason.message !== "" ? reason.message : "the call was cancelled.";
  }
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ECONNREFUSED" || code === "ENOENT")
    return "nothing listens there. Start the daemon: ignition-mcp daemon";
  return code ? `${code}.` : message;
}
