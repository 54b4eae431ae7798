import { AdapterError, sentenceOf } from "../anvil/adapter-error.ts";
import { redactAgentTokens } from "../anvil/redact-agent-tokens.ts";
import {
  type DaemonRequest,
  type DaemonTarget,
  readBounded,
  sendRequest,
  startRequest,
} from "../anvil/send-request.ts";
import { parseJson } from "../base/parse-json.ts";
import type { Environment } from "../config/config.ts";
import { type ConsoleOutput, complain, print, ReaderGone } from "./console-output.ts";
import { ctlTarget } from "./ctl-target.ts";
import { type View, wallLine } from "./ctl-view.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { printable } from "./printable.ts";
import { serverSentData } from "./server-sent-data.ts";

/** What every ctl command takes. */
export interface CtlOptions {
  json: boolean;
  token?: string;
}

export interface CtlRequest {
  method: DaemonRequest["method"];
  /** Path and query, all parts of it escaped */
  path: string;
  /** Sent as JSON, without members that are undefined */
  body?: Readonly<Record<string, unknown>>;
}

export interface CtlContext {
  env: Environment;
  output: ConsoleOutput;
  /** Aborted by Ctrl-C */
  signal: AbortSignal;
}

/** Makes one request and prints its answer: as it came with `--json`, else through the view. */
export async function ctlCall(
  request: CtlRequest,
  view: View,
  { json, token }: CtlOptions,
  { env, output, signal }: CtlContext,
): Promise<ExitCode> {
  const target = ctlTarget(env, token);
  const { status, body } = await sendRequest(target, toDaemonRequest(request, signal));
  const text = toText(body);
  if (status >= 300) return await fail(request, status, text, output);
  const answer = parseJson(text);
  const shown = view(answer === undefined ? text : answer);
  if (shown === null) throw notAsDocumented(request, target);
  await print(output.stdout, json ? text : shown);
  return EXIT.ok;
}

/** Prints messages as they are posted, until the daemon ends the stream or nobody reads them any more. */
export async function ctlFollow(
  request: CtlRequest,
  { json, token }: CtlOptions,
  { env, output, signal }: CtlContext,
): Promise<ExitCode> {
  const target = ctlTarget(env, token);
  const response = await startRequest(target, toDaemonRequest(request, signal));
  try {
    if (response.status >= 300)
      return await fail(request, response.status, toText(await readBounded(response, request)), output);
    if (!response.headers.get("content-type")?.startsWith("text/event-stream"))
      throw notAsDocumented(request, target);
    for await (const data of serverSentData(response.body ?? new ReadableStream())) {
      const line = wallLine(parseJson(data));
      if (line === null) throw notAsDocumented(request, target);
      await print(output.stdout, json ? data : line);
    }
    return EXIT.ok;
  } catch (error) {
    if (error instanceof ReaderGone || error instanceof AdapterError) throw error;
    const broken = `the stream of ${request.method} ${request.path} broke off: ${sentenceOf(error)}`;
    throw new AdapterError("daemon_unreachable", broken, error);
  }
}

function toDaemonRequest({ method, path, body }: CtlRequest, signal: AbortSignal): DaemonRequest {
  if (body === undefined) return { method, path, signal };
  return { method, path, contentType: "application/json", body: JSON.stringify(body), signal };
}

async function fail(
  { method, path }: CtlRequest,
  status: number,
  text: string,
  output: ConsoleOutput,
): Promise<ExitCode> {
  await complain(output, `${method} ${path} → HTTP ${status}: ${printable(text)}`);
  return EXIT.failed;
}

function notAsDocumented({ method, path }: CtlRequest, { baseUrl, socketPath }: DaemonTarget): AdapterError {
  return new AdapterError(
    "bad_reply",
    `${socketPath ?? baseUrl} answered ${method} ${path}, but not as documented. Check that EPHEMERA_CTL_URL leads to an ignition-mcp daemon.`,
  );
}

function toText(body: Uint8Array): string {
  return redactAgentTokens(new TextDecoder().decode(body)).trimEnd();
}
