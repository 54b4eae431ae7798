import { type Channel, pumpOpen } from "./channel.ts";
import { type Destination, isInternal, textOf } from "./destination.ts";
import type { EgressGate } from "./egress-gate.ts";
import { readBody } from "./http-body.ts";
import { badRequest, endOfHead, MAX_HEAD_BYTES, parseHead, type RequestHead } from "./http-head.ts";
import { encodeHead, type HttpRequest, readHttpRequest } from "./http-request.ts";
import { inTime } from "./in-time.ts";
import { serveInternal } from "./internal-request.ts";
import { Passage } from "./passage.ts";

const CRLF = Buffer.from("\r\n");
const LAST_CHUNK = Buffer.from("0\r\n\r\n");

function chunkOf(piece: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${piece.byteLength.toString(16)}\r\n`), piece, CRLF]);
}

interface Server {
  origin: string;
  channel: Channel;
  /** Settles when all it answered was passed on */
  answered: Promise<void>;
  isOver: boolean;
  takesNoMore: boolean;
}

/** Reads the next head; null when the client ended instead. Throws `bad_request` or `handshake_timeout`. */
export async function readHead(client: Channel, handshakeMs: number): Promise<RequestHead | null> {
  if (client.buffered.byteLength === 0 && !(await client.fill())) return null;
  return await inTime(readWholeHead(client), handshakeMs, "the request");
}

async function readWholeHead(client: Channel): Promise<RequestHead> {
  for (;;) {
    const end = endOfHead(client.buffered.subarray(0, MAX_HEAD_BYTES));
    if (end >= 0) return parseHead(client.take(end));
    if (client.buffered.byteLength >= MAX_HEAD_BYTES)
      throw badRequest(`its head is larger than ${MAX_HEAD_BYTES} bytes`);
    if (!(await client.fill())) throw badRequest("it ends in its head");
  }
}

/**
 * Serves requests for plain http, one after another: each is understood, checked and written anew, its answer passed
 * on as it comes. One server at a time; a request for another one is decided and connected anew.
 */
export class HttpRelay {
  readonly #client: Channel;
  readonly #gate: EgressGate;
  /** Inside a tunnel: where it leads */
  readonly #fixed: Destination | null;
  #server: Server | null = null;
  #isLeaving = false;
  #isAnswering = false;
  /** The one under way; null between two servers */
  #passage: Passage | null;

  constructor(
    client: Channel,
    gate: EgressGate,
    passage: Passage,
    tunnel?: { to: Destination; channel?: Channel },
  ) {
    this.#client = client;
    this.#gate = gate;
    this.#passage = passage;
    this.#fixed = tunnel?.to ?? null;
    if (tunnel?.channel) this.#attach(tunnel.to, tunnel.channel);
  }

  /** True while an answer may be on its way, so that nothing of ours can be put between. */
  get isAnswering(): boolean {
    return this.#isAnswering;
  }

  /** Resolves when the connection is over. Rejects with the refusal of a request, after which it is over too. */
  async run(first: RequestHead | null): Promise<void> {
    let failure: unknown;
    try {
      await this.#serveAll(first).catch((error) => this.#passOnLastAnswer(error));
      await this.#client.end();
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      const server = this.#server;
      this.#server = null;
      server?.channel.destroy(failure);
      if (failure !== undefined) this.#passage ??= new Passage(this.#gate, this.#client);
      this.#passage?.end(failure);
    }
  }

  async #serveAll(first: RequestHead | null): Promise<void> {
    for (let head = first ?? (await this.#nextHead()); head; head = await this.#nextHead()) {
      const request = readHttpRequest(head, this.#fixed);
      if (await this.#serve(request)) return await this.#server?.answered;
    }
    await this.#leaveServer();
  }

  /** A server may answer and end its connection before it has read all of a request. */
  async #passOnLastAnswer(error: unknown): Promise<void> {
    if (!this.#server?.isOver && !this.#server?.takesNoMore) throw error;
    await this.#server.answered;
  }

  async #nextHead(): Promise<RequestHead | null> {
    return await readHead(this.#client, this.#gate.limits.handshakeMs);
  }

  /** True when it was the last. */
  async #serve(request: HttpRequest): Promise<boolean> {
    if (isInternal(request.destination)) return await this.#serveInternal(request);
    const server = await this.#serverFor(request.destination);
    this.#isAnswering = true;
    await this.#send(server, encodeHead(request));
    const isChunked = request.framing.kind === "chunked";
    await readBody(this.#client, request.framing, async (piece) => {
      await this.#send(server, isChunked ? chunkOf(piece) : piece);
    });
    if (isChunked) await this.#send(server, LAST_CHUNK);
    return request.isLast;
  }

  async #send(server: Server, bytes: Uint8Array): Promise<void> {
    await server.channel.write(bytes).catch((error) => {
      server.takesNoMore = true;
      throw error;
    });
  }

  async #serveInternal(request: HttpRequest): Promise<boolean> {
    await this.#leaveServer();
    const passage = this.#begin(request.destination);
    passage.allow("internal");
    const isLast = await serveInternal(this.#gate, this.#client, request);
    passage.end();
    this.#passage = null;
    return isLast;
  }

  async #serverFor(destination: Destination): Promise<Server> {
    if (this.#server?.origin === textOf(destination)) return this.#server;
    await this.#leaveServer();
    const passage = this.#begin(destination);
    const { channel, grounds } = await this.#gate.open(destination);
    passage.allow(grounds);
    return this.#attach(destination, channel);
  }

  #begin(destination: Destination): Passage {
    this.#passage ??= new Passage(this.#gate, this.#client);
    this.#passage.goesTo(destination);
    return this.#passage;
  }

  #attach(destination: Destination, channel: Channel): Server {
    this.#client.accompany(channel);
    const answered = pumpOpen(channel, this.#client);
    const server = { origin: textOf(destination), channel, answered, isOver: false, takesNoMore: false };
    this.#server = server;
    answered.then(
      () => this.#serverEnded(server),
      (error) => this.#server === server && this.#client.destroy(error),
    );
    return server;
  }

  /** A server that ends its connection while it is the one in use ends the client's, as it would without a proxy. */
  #serverEnded(server: Server): void {
    server.isOver = true;
    if (this.#server === server && !this.#isLeaving) this.#client.stopReading();
  }

  /** Lets the server finish its answers, then ends its connection. */
  async #leaveServer(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    this.#isLeaving = true;
    // A server that is gone already has answered all it will.
    await server.channel.end().catch(() => undefined);
    await server.answered;
    this.#server = null;
    this.#isLeaving = this.#isAnswering = false;
    server.channel.destroy(new Error("the connection is not needed any more"));
    this.#passage?.end();
    this.#passage = null;
  }
}
