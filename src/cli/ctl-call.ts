import { AdapterError, sentenceOf } from "../anvil/adapter-error.ts";
import { redactAgentTokens } from "../anvil/redact-agent-tokens.ts";
import { type DaemonRequest, sendRequest, startRequest } from "../anvil/send-request.ts";
import { parseJson } from "../base/parse-json.ts";
import type { Environment } from "../config/config.ts";
import { type ConsoleOutput, print } from "./console-output.ts";
import { ctlTarget } from "./ctl-target.ts";
import { type View, wallLine } from "./ctl-view.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
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
  const { status, body } = await sendRequest(ctlTarget(env, token), toDaemonRequest(request, signal));
  const text = redactAgentTokens(new TextDecoder().decode(body)).trimEnd();
  if (status >= 300) return await fail(request, status, text, output);
  await print(output.stdout, json ? text : view(parseJson(text) ?? text));
  return EXIT.ok;
}

/** Prints messages as they are posted, until the daemon ends the stream or nobody reads them any more. */
export async function ctlFollow(
  request: CtlRequest,
  { json, token }: CtlOptions,
  { env, output, signal }: CtlContext,
): Promise<ExitCode> {
  const response = await startRequest(ctlTarget(env, token), toDaemonRequest(request, signal));
  try {
    if (response.status >= 300)
      return await fail(request, response.status, (await response.text()).trimEnd(), output);
    for await (const data of serverSentData(response.body ?? new ReadableStream())) {
      await print(output.stdout, json ? data : wallLine(parseJson(data) ?? data));
    }
    return EXIT.ok;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EPIPE") return EXIT.ok;
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
  { stderr }: ConsoleOutput,
): Promise<ExitCode> {
  await print(stderr, `ignition-mcp: ${method} ${path} → HTTP ${status}: ${redactAgentTokens(text)}`);
  return EXIT.failed;
}
