import { expect, test } from "bun:test";
import { AgentClient } from "../../../src/guest/agent-client.ts";
import { INITIAL_CREDIT_BYTES, Message } from "../../../src/guest/agent-protocol.ts";
import { CreditedSender } from "../../../src/guest/credited-sender.ts";
import type { ConnectFrames, Frame, FrameHandler } from "../../../src/vsock/frame-connection.ts";

const STREAM = 5;

/** A client on a carrier that answers HELLO, keeps what is sent, and is full whenever the test says so. */
async function clientOnFakeCarrier() {
  const carrier = { isFull: false, sent: [] as Frame[], handler: null as FrameHandler | null };
  const connect: ConnectFrames = async ({ handler }) => {
    carrier.handler = handler;
    return {
      pendingBytes: 0,
      pause: () => undefined,
      resume: () => undefined,
      close: () => undefined,
      [Symbol.dispose]: () => undefined,
      send(type, stream, payload = new Uint8Array(0)) {
        if (type === Message.HELLO) queueMicrotask(() => answerHello(handler, payload));
        else carrier.sent.push({ type, stream, payload });
        return !carrier.isFull;
      },
    };
  };
  const client = await AgentClient.connect({ path: "/none", deadlineMs: 1000, connect });
  return { client, carrier };
}

function answerHello(handler: FrameHandler, hello: Uint8Array): void {
  const { nonce } = JSON.parse(Buffer.from(hello).toString());
  const reply = { protocol: 1, nonce, build: "b0", kernel: "6.1", features: "" };
  handler.onFrames([{ type: Message.OK, stream: 0, payload: Buffer.from(JSON.stringify(reply)) }]);
}

function sentBytes(frames: Frame[]): number {
  return frames.reduce((sum, frame) => sum + frame.payload.byteLength, 0);
}

test("a full carrier holds the sender up until it has drained", async () => {
  const { client, carrier } = await clientOnFakeCarrier();
  using _client = client;
  carrier.isFull = true;
  const sending = new CreditedSender(client, Message.STDIN).sendAll(STREAM, new Uint8Array(1_000_000));
  await Bun.sleep(1);
  expect(carrier.sent).toHaveLength(1);
  carrier.isFull = false;
  carrier.handler!.onDrain!();
  expect(await sending).toBe(true);
  expect(sentBytes(carrier.sent)).toBe(1_000_000);
});

test("a sender that is stopped while it waits, for credit or for the carrier, sends no more", async () => {
  const { client, carrier } = await clientOnFakeCarrier();
  using _client = client;
  const outOfCredit = new CreditedSender(client, Message.STDIN);
  const waiting = outOfCredit.sendAll(STREAM, new Uint8Array(2 * INITIAL_CREDIT_BYTES));
  await Bun.sleep(1);
  expect(sentBytes(carrier.sent)).toBe(INITIAL_CREDIT_BYTES);
  outOfCredit.stop();
  expect(await waiting).toBe(false);
  carrier.isFull = true;
  const heldUp = new CreditedSender(client, Message.STDIN);
  const holding = heldUp.sendAll(STREAM, new Uint8Array(1_000_000));
  heldUp.stop();
  const before = carrier.sent.length;
  carrier.handler!.onDrain!();
  expect(await holding).toBe(false);
  expect(carrier.sent).toHaveLength(before);
});

test("a connection that ends lets go of a sender that waits for the carrier", async () => {
  const { client, carrier } = await clientOnFakeCarrier();
  carrier.isFull = true;
  const sending = new CreditedSender(client, Message.STDIN).sendAll(STREAM, new Uint8Array(1_000_000));
  client.close();
  await expect(sending).rejects.toMatchObject({ code: "agent_lost" });
});
