import { type AgentProcess, type Frame, type, windowBytes } from "./agent-process.ts";

export interface RunRequest {
  /** null: /dev/null; otherwise sent at once, followed by the end */
  stdin?: string | Buffer | null;
  cwd?: string | null;
  timeoutMs?: number;
  maxOutputBytes?: number;
  spool?: boolean;
  reportMs?: number;
}

export interface RunEnd {
  stdout: Buffer;
  stderr: Buffer;
  /** REPORT's members, in order */
  reports: Record<string, unknown>[];
  /** EXIT's members, or ERROR's */
  end: Record<string, unknown>;
  ended: "exit" | "error";
}

/** Sends RUN and its COMMAND; the stream's number. `stdin` is not sent. */
export function startRun(agent: AgentProcess, command: string | Buffer, request: RunRequest = {}): number {
  const bytes = Buffer.from(command);
  const stream = agent.newStream();
  agent.send(type.run, stream, {
    command_bytes: bytes.length,
    stdin: request.stdin !== undefined && request.stdin !== null,
    cwd: request.cwd ?? null,
    timeout_ms: request.timeoutMs ?? 30_000,
    max_output_bytes: request.maxOutputBytes ?? 32_768,
    ...(request.spool !== undefined && { spool: request.spool }),
    ...(request.reportMs !== undefined && { report_ms: request.reportMs }),
  });
  for (let at = 0; at < bytes.length; at += 500_000)
    agent.send(type.command, stream, bytes.subarray(at, at + 500_000));
  return stream;
}

/** Collects a run's output until EXIT or ERROR. */
export async function endRun(agent: AgentProcess, stream: number): Promise<RunEnd> {
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  const reports: Record<string, unknown>[] = [];
  for (;;) {
    const frame = await agent.next(stream);
    if (frame.type === type.stdout) stdout.push(frame.payload);
    else if (frame.type === type.stderr) stderr.push(frame.payload);
    else if (frame.type === type.report) reports.push(parse(frame));
    else if (frame.type === type.exit || frame.type === type.error)
      return {
        stdout: Buffer.concat(stdout),
        stderr: Buffer.concat(stderr),
        reports,
        end: parse(frame),
        ended: frame.type === type.exit ? "exit" : "error",
      };
  }
}

export async function run(agent: AgentProcess, command: string | Buffer, request: RunRequest = {}) {
  const stream = startRun(agent, command, request);
  if (request.stdin !== undefined && request.stdin !== null) {
    agent.send(type.stdin, stream, Buffer.from(request.stdin));
    agent.send(type.stdinEof, stream, Buffer.alloc(0));
  }
  return endRun(agent, stream);
}

/** PUT within the credit the agent grants; its last frame. */
export async function put(agent: AgentProcess, path: string, bytes: Buffer, mode: number | null = null) {
  const stream = agent.newStream();
  agent.send(type.put, stream, { path, bytes: bytes.length, mode });
  let credit = windowBytes;
  let at = 0;
  while (at < bytes.length) {
    const part = bytes.subarray(at, at + Math.min(credit, 200_000));
    if (part.length === 0) {
      const frame = await agent.next(stream);
      if (frame.type !== type.credit) return outcome(frame);
      credit += frame.payload.readUInt32LE(0);
    } else {
      agent.send(type.data, stream, part);
      at += part.length;
      credit -= part.length;
    }
  }
  for (;;) {
    const frame = await agent.next(stream);
    if (frame.type !== type.credit) return outcome(frame);
  }
}

/** GET, granting credit as it goes. */
export async function get(
  agent: AgentProcess,
  path: string,
  offset: number | null = null,
  bytes: number | null = null,
) {
  const stream = agent.newStream();
  agent.send(type.get, stream, { path, offset, bytes });
  const parts: Buffer[] = [];
  for (;;) {
    const frame = await agent.next(stream);
    if (frame.type !== type.data) return { bytes: Buffer.concat(parts), ...outcome(frame) };
    parts.push(frame.payload);
    agent.send(type.credit, stream, uint32(frame.payload.length));
  }
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

export function parse(frame: Frame): Record<string, unknown> {
  return JSON.parse(frame.payload.toString());
}

export function outcome(frame: Frame) {
  return { ok: frame.type === type.ok, answer: parse(frame) };
}
