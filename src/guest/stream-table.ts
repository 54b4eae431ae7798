import type { Frame } from "../vsock/frame-connection.ts";
import { AgentError } from "./agent-error.ts";
import { decodeJson, errorReply, FIRST_AGENT_STREAM, Message } from "./agent-protocol.ts";

/** One stream's receiving end. After `onError` or `AgentClient.endStream` nothing more is delivered. */
export interface StreamHandler {
  onFrame(frame: Frame): void;
  onError(error: AgentError): void;
}

/** Makes the handler of a stream that the agent opens, or null when it cancelled the stream. */
export type AcceptStream = (stream: number) => StreamHandler | null;

/** The streams of one agent connection: who gets which frame. */
export class StreamTable {
  readonly #handlers = new Map<number, StreamHandler>();
  #accept: AcceptStream | null = null;

  add(stream: number, handler: StreamHandler): void {
    this.#handlers.set(stream, handler);
  }

  end(stream: number): void {
    this.#handlers.delete(stream);
  }

  acceptWith(accept: AcceptStream): void {
    this.#accept = accept;
  }

  acceptsWith(accept: AcceptStream): boolean {
    return this.#accept === accept;
  }

  /** Throws, as handlers do, when the frame breaks the protocol. */
  take(frame: Frame): void {
    const handler = this.#handlers.get(frame.stream);
    if (!handler) this.#takeUnasked(frame);
    else if (frame.type === Message.ERROR) this.#refuse(frame, handler);
    else handler.onFrame(frame);
  }

  failAll(error: AgentError): void {
    const handlers = [...this.#handlers.values()];
    this.#handlers.clear();
    for (const handler of handlers) handler.onError(error);
  }

  /** Frames of a stream that has ended may cross its end; a new one begins with ACCEPTED. */
  #takeUnasked({ type, stream }: Frame): void {
    if (type !== Message.ACCEPTED) return;
    if (!this.#accept || stream < FIRST_AGENT_STREAM)
      throw new RangeError("the agent opened a stream that nobody waits for");
    const handler = this.#accept(stream);
    if (handler) this.add(stream, handler);
  }

  #refuse(frame: Frame, handler: StreamHandler): void {
    const { code, errno, message } = decodeJson(errorReply, frame.payload);
    this.end(frame.stream);
    // The guest's own words stay out of our sentence.
    const detail = { refusal: code, errno, cause: message };
    handler.onError(new AgentError("agent_refused", `the agent refused the request: ${code}`, detail));
  }
}
