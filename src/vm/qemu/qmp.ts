import { within } from "../../base/wait.ts";
import { VM_DEADLINES } from "../vm-deadlines.ts";
import { VmError } from "../vm-error.ts";

/** Longest line QEMU may send; real ones are below 64 KiB. */
const MAX_LINE_BYTES = 1_048_576;

export interface QmpEvent {
  event: string;
  data: Record<string, unknown>;
}

interface QmpReply {
  id?: number;
  return?: unknown;
  error?: unknown;
  event?: string;
  data?: unknown;
  QMP?: unknown;
}

type Waiting = { resolve(value: unknown): void; reject(error: Error): void; command: string };

/**
 * QMP over a socket QEMU connects to. Protocol: QEMU's docs/interop/qmp-spec.
 * Feed it bytes with `receive`; every command has a deadline.
 */
export class Qmp {
  readonly #write: (line: string) => void;
  readonly #commandMs: number;
  readonly #waiting = new Map<number, Waiting>();
  readonly #listeners = new Set<(event: QmpEvent) => void>();
  readonly #greeting = Promise.withResolvers<void>();
  readonly #failure = Promise.withResolvers<never>();
  #decoder = new TextDecoder();
  #text = "";
  #nextId = 1;
  #ended: VmError | null = null;

  constructor(write: (line: string) => void, commandMs = VM_DEADLINES.commandMs) {
    this.#write = write;
    this.#commandMs = commandMs;
    this.#greeting.promise.catch(() => undefined);
    this.#failure.promise.catch(() => undefined);
  }

  /** Rejects when the connection ends; for waits on events, which nobody else would end. */
  get failure(): Promise<never> {
    return this.#failure.promise;
  }

  /** Waits for QEMU's greeting and leaves the negotiation mode. */
  async open(deadlineMs: number, signal?: AbortSignal): Promise<void> {
    await within(this.#greeting.promise, deadlineMs, "QEMU's greeting", signal);
    await this.execute("qmp_capabilities");
  }

  execute(command: string, args?: object, deadlineMs = this.#commandMs): Promise<unknown> {
    if (this.#ended) return Promise.reject(this.#ended);
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#waiting.set(id, { resolve, reject, command });
    this.#write(`${JSON.stringify({ execute: command, id, ...(args && { arguments: args }) })}\n`);
    return within(promise, deadlineMs, `QEMU's answer to ${command}`).finally(() => this.#waiting.delete(id));
  }

  /** Calls back for every event until the returned function is called. */
  onEvent(listener: (event: QmpEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  receive(bytes: Uint8Array): void {
    if (this.#ended) return;
    this.#text += this.#decoder.decode(bytes, { stream: true });
    const lines = this.#text.split("\n");
    this.#text = lines.pop() ?? "";
    if (this.#text.length > MAX_LINE_BYTES) {
      this.end("sent an endless line");
      return;
    }
    for (const line of lines) if (line.trim() !== "") this.#take(line);
  }

  /** Rejects everything that waits. `reason` completes "QEMU …". */
  end(reason: string): void {
    if (this.#ended) return;
    this.#ended = new VmError("vmm_failed", `QEMU ${reason}`);
    this.#text = "";
    this.#greeting.reject(this.#ended);
    this.#failure.reject(this.#ended);
    for (const { reject } of this.#waiting.values()) reject(this.#ended);
    this.#waiting.clear();
  }

  #take(line: string): void {
    let reply: QmpReply;
    try {
      reply = JSON.parse(line) as QmpReply;
    } catch {
      // Whoever sends this is not QEMU as we know it; nothing behind it can be trusted.
      this.end("sent a line that is not JSON");
      return;
    }
    if (typeof reply !== "object" || reply === null) this.end("sent a line that is no object");
    else if (reply.QMP !== undefined) this.#greeting.resolve();
    else if (typeof reply.event === "string") this.#emit({ event: reply.event, data: members(reply.data) });
    else if (typeof reply.id === "number") this.#settle(reply.id, reply);
  }

  #emit(event: QmpEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  #settle(id: number, reply: QmpReply): void {
    const waiting = this.#waiting.get(id);
    if (!waiting) return;
    if (reply.error !== undefined) {
      const { desc } = members(reply.error);
      const reason = typeof desc === "string" ? desc : "it gave no reason";
      waiting.reject(new VmError("vmm_failed", `QEMU refused ${waiting.command}: ${reason}`));
    } else waiting.resolve(reply.return);
  }
}

/** Those of an object; none of anything else. */
function members(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
