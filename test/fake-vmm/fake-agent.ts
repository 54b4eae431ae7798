import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { UnixSocketListener } from "bun";
import { Message } from "../../src/guest/agent-protocol.ts";
import type { Frame } from "../../src/vsock/frame-connection.ts";
import { Rng } from "../support/rng.ts";
import type { AgentFault } from "./agent-fault.ts";
import { FakeGet, FakePut, type FileStream } from "./fake-files.ts";
import { FakeRun } from "./fake-run.ts";
import { Peer } from "./peer.ts";

/** Time for the host's next bytes to arrive unread before a connection is reset, in `ms` */
const UNREAD_MS = 20;
const GARBAGE_BYTES = 4096;
const GARBAGE_SEED = 8;

export interface FakeAgentOptions {
  fault?: AgentFault;
  build?: string;
  refusesHold?: boolean;
  refusesProbe?: boolean;
  /** How OPEN is refused; default: it is not */
  refusesOpen?: { code: string; errno: string };
  /** Of HELLO's answer */
  features?: string;
  /** AF_UNIX path to listen on; default: a socket in a directory of its own */
  path?: string;
  /** What a run does once its command and stdin came whole; default: it succeeds without output */
  onRun?: (run: FakeRun) => void;
  /** Called when RUN comes, before the command */
  onRunRequest?: (run: FakeRun) => void;
  /** False: the host gets no more than its initial credit */
  grants?: boolean;
}

/** Plays the agent's side of docs/wire on a socket, without a VM. Files are kept in `files`. */
export class FakeAgent implements Disposable {
  readonly path: string;
  readonly files = new Map<string, Uint8Array>();
  /** Every frame of every connection, in the order they came */
  readonly received: Frame[] = [];
  connectLine: string | null = null;
  /** May be changed at any time; the next request meets it */
  fault: AgentFault | null;
  readonly #options: FakeAgentOptions;
  readonly #directory: string | null;
  readonly #listener: UnixSocketListener<Peer>;
  readonly #peers = new Set<Peer>();
  readonly #streams = new Map<number, FakeRun | FileStream>();

  constructor(options: FakeAgentOptions = {}) {
    this.#options = options;
    this.fault = options.fault ?? null;
    this.#directory = options.path === undefined ? mkdtempSync("/tmp/ign-agent-") : null;
    this.path = options.path ?? join(this.#directory!, "vsock.sock");
    this.#listener = Bun.listen<Peer>({
      unix: this.path,
      socket: {
        binaryType: "uint8array",
        open: (socket) => {
          socket.data = new Peer(socket);
          this.#peers.add(socket.data);
        },
        data: (socket, bytes: Uint8Array) => this.#receive(socket.data, bytes),
        drain: (socket) => socket.data.flush(),
        close: (socket) => {
          this.#peers.delete(socket.data);
        },
      },
    });
  }

  /** Connections that are open now. */
  get connections(): number {
    return this.#peers.size;
  }

  /** The frames of one type that came so far. */
  receivedOf(type: number): Frame[] {
    return this.received.filter((frame) => frame.type === type);
  }

  answerConnect(): void {
    for (const peer of this.#peers) peer.sendBytes(Buffer.from("OK 1\n"));
  }

  /** Sends the same frame on every connection. */
  broadcast(type: number, stream: number, payload?: Uint8Array): void {
    for (const peer of this.#peers) peer.sendFrame(type, stream, payload);
  }

  /** The same for frames that are to arrive together. */
  broadcastBytes(bytes: Uint8Array): void {
    for (const peer of this.#peers) peer.sendBytes(bytes);
  }

  /** Ends every connection, as a guest does that dies. */
  dropConnections(): void {
    for (const peer of this.#peers) peer.terminate();
  }

  [Symbol.dispose](): void {
    this.#listener.stop(true);
    if (this.#directory !== null) rmSync(this.#directory, { recursive: true, force: true });
  }

  #receive(peer: Peer, bytes: Uint8Array): void {
    const { connectLine, frames } = peer.receive(bytes);
    if (connectLine !== null) this.#answerConnectLine(connectLine, peer);
    for (const frame of frames) {
      this.received.push(frame);
      this.#take(peer, frame);
    }
  }

  #answerConnectLine(line: string, peer: Peer): void {
    this.connectLine = line;
    const { fault } = this;
    if (fault === "bad_ok") peer.sendBytes(Buffer.from("NO 1\n"));
    else if (fault === "endless_ok") peer.sendBytes(Buffer.from("OK 1".repeat(64)));
    else if (fault === "dies_on_connect") peer.terminate();
    else if (fault !== "no_ok" && fault !== "slow_ok") this.answerConnect();
  }

  #take(peer: Peer, frame: Frame): void {
    if (frame.type === Message.HELLO) this.#greet(peer, frame);
    else if (this.#streams.has(frame.stream)) this.#streams.get(frame.stream)!.take(frame);
    else if (!this.#breakOn(peer, frame)) this.#answer(peer, frame);
  }

  #greet(peer: Peer, frame: Frame): void {
    const { build = "b0", features = "run put get tcp" } = this.#options;
    const { fault } = this;
    if (fault === "no_hello") return;
    if (fault === "bad_hello") {
      peer.sendFrame(Message.OK, 0, Buffer.from([0xff, 0x7b]));
      return;
    }
    const nonce = fault === "wrong_nonce" ? "0".repeat(32) : bodyOf(frame)["nonce"];
    const protocol = fault === "wrong_protocol" ? 2 : 1;
    peer.sendJson(Message.OK, 0, { protocol, nonce, build, kernel: "6.1.0", features });
  }

  /** True when the fault takes the place of an answer. */
  #breakOn(peer: Peer, { stream }: Frame): boolean {
    switch (this.fault) {
      case "bad_reply":
        peer.sendFrame(Message.OK, stream, Buffer.from("{]"));
        return true;
      case "wrong_reply":
        peer.sendFrame(Message.HELLO, stream);
        return true;
      case "half_frame":
        peer.sendBytes(HALF_FRAME);
        peer.end();
        return true;
      case "huge_length":
        peer.sendBytes(Buffer.from([0xff, 0xff, 0xff, 0x7f]));
        return true;
      case "garbage":
        peer.sendBytes(new Rng(GARBAGE_SEED).bytes(GARBAGE_BYTES));
        return true;
      case "dies_on_request":
        peer.terminate();
        return true;
      case "resets":
        peer.stopReading();
        setTimeout(() => peer.terminate(), UNREAD_MS);
        return true;
      case "vmm_dies_mid_reply":
        peer.sendBytes(HALF_FRAME);
        process.kill(process.pid, "SIGKILL");
        return true;
      case "silent":
        return true;
      default:
        return false;
    }
  }

  #answer(peer: Peer, frame: Frame): void {
    const { type, stream } = frame;
    if (type === Message.HOLD && this.#options.refusesHold) refuse(peer, frame, "refused", "EPERM");
    else if (type === Message.PROBE && this.#options.refusesProbe)
      refuse(peer, frame, "probe_failed", "EAGAIN");
    else if (type === Message.PING) peer.sendJson(Message.OK, stream, { monotonic_us: 1 });
    else if ([Message.CLONED, Message.PROBE, Message.HOLD, Message.RELEASE].some((each) => each === type))
      peer.sendJson(Message.OK, stream, {});
    else if (type === Message.LISTEN) peer.sendJson(Message.OK, stream, { port: 3128 });
    else if (type === Message.OPEN) this.#open(peer, frame);
    else if (type === Message.RUN) this.#startRun(peer, frame);
    else if (type === Message.PUT) this.#startPut(peer, frame);
    else if (type === Message.GET) this.#startGet(peer, frame);
  }

  /** What goes on in a tunnel is up to the test, with `broadcast` and `received`. */
  #open(peer: Peer, frame: Frame): void {
    const { refusesOpen } = this.#options;
    if (refusesOpen) refuse(peer, frame, refusesOpen.code, refusesOpen.errno);
    else peer.sendJson(Message.OK, frame.stream, {});
  }

  #startRun(peer: Peer, frame: Frame): void {
    const { onRun = (ready) => ready.exit(), onRunRequest, grants = true } = this.#options;
    const run = new FakeRun(peer, frame.stream, bodyOf(frame) as never, grants, onRun);
    this.#streams.set(frame.stream, run);
    onRunRequest?.(run);
  }

  #startPut(peer: Peer, frame: Frame): void {
    const request = bodyOf(frame) as { path: string; bytes: number };
    const grants = this.#options.grants ?? true;
    if (request.path.endsWith("/")) refuse(peer, frame, "is_directory", "EISDIR");
    else this.#streams.set(frame.stream, new FakePut(peer, frame.stream, request, this.files, grants));
  }

  #startGet(peer: Peer, frame: Frame): void {
    const request = bodyOf(frame) as { path: string; offset: number; bytes: number | null };
    const content = this.files.get(request.path);
    if (content === undefined) refuse(peer, frame, "not_found", "ENOENT");
    else this.#streams.set(frame.stream, new FakeGet(peer, frame.stream, request, content));
  }
}

const HALF_FRAME = Buffer.from([20, 0, 0, 0, Message.OK, 1, 0]);

function bodyOf(frame: Frame): Record<string, unknown> {
  return JSON.parse(Buffer.from(frame.payload).toString());
}

function refuse(peer: Peer, { stream }: Frame, code: string, errno: string): void {
  peer.sendJson(Message.ERROR, stream, { code, errno, message: "from the guest" });
}
