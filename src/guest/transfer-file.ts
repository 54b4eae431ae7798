import type { AgentClient } from "./agent-client.ts";
import { AgentError } from "./agent-error.ts";
import {
  decodeCredit,
  decodeJson,
  encodeCredit,
  encodeJson,
  getReply,
  INITIAL_CREDIT_BYTES,
  Message,
  putReply,
} from "./agent-protocol.ts";
import { ByteCollector } from "./byte-collector.ts";
import { CreditedSender } from "./credited-sender.ts";

/** Slowest transfer that is still believed to move, in bytes per second, and the time every transfer gets besides */
const FLOOR_BYTES_PER_S = 262_144;
const FIXED_MS = 30_000;

/** Writes a whole file in the guest, or nothing. Rejects with `AgentError`; `refusal` says why the guest refused. */
export async function putFile(
  client: AgentClient,
  path: string,
  content: Uint8Array,
  signal: AbortSignal,
  fixedMs = FIXED_MS,
): Promise<void> {
  signal.throwIfAborted();
  const sender = new CreditedSender(client, Message.DATA);
  const { promise: stored, resolve, reject } = Promise.withResolvers<number>();
  stored.catch(() => undefined);
  const stream = client.openStream({
    onFrame: ({ type, payload }) => {
      if (type === Message.CREDIT) sender.grant(decodeCredit(payload));
      else if (type === Message.OK) {
        const { bytes } = decodeJson(putReply, payload);
        if (bytes !== content.byteLength || sender.sentBytes < bytes)
          throw new RangeError("the agent stored another number of bytes, or before it had them");
        client.endStream(stream);
        resolve(bytes);
      } else throw new RangeError(`type ${type} does not answer PUT`);
    },
    onError: (error) => {
      sender.stop();
      reject(error);
    },
  });
  client.send(Message.PUT, stream, encodeJson({ path, bytes: content.byteLength, mode: null }));
  await transfer(
    client,
    stream,
    deadlineFor(content.byteLength, fixedMs),
    signal,
    async () => {
      await Promise.all([sender.sendAll(stream, content), stored]);
    },
    () => sender.stop(),
  );
}

export interface GetRange {
  offset: number;
  /** Null for all up to the end, or up to the limit */
  bytes: number | null;
  limitBytes: number;
}

export interface FileContent {
  content: Uint8Array;
  /** Size of the whole file; 0 for those the kernel makes up, as in /proc */
  fileBytes: number;
}

/** Reads a file, or `bytes` of it from `offset`. Holds the whole answer in memory: `limitBytes` bounds it. */
export async function getFile(
  client: AgentClient,
  path: string,
  range: GetRange,
  signal: AbortSignal,
  fixedMs = FIXED_MS,
): Promise<FileContent> {
  signal.throwIfAborted();
  const bytes = Math.min(range.bytes ?? range.limitBytes, range.limitBytes);
  const content = new ByteCollector();
  let ungrantedBytes = 0;
  const { promise: ended, resolve, reject } = Promise.withResolvers<number>();
  ended.catch(() => undefined);
  const stream = client.openStream({
    onFrame: ({ type, payload }) => {
      if (type === Message.OK) {
        const reply = decodeJson(getReply, payload);
        client.endStream(stream);
        resolve(reply.file_bytes);
        return;
      }
      if (type !== Message.DATA) throw new RangeError(`type ${type} does not answer GET`);
      if (content.byteLength + payload.byteLength > bytes)
        throw new RangeError("the agent sent more of a file than was asked for");
      content.add(payload);
      ungrantedBytes += payload.byteLength;
      if (ungrantedBytes >= INITIAL_CREDIT_BYTES / 2) {
        client.send(Message.CREDIT, stream, encodeCredit(ungrantedBytes));
        ungrantedBytes = 0;
      }
    },
    onError: reject,
  });
  client.send(Message.GET, stream, encodeJson({ path, offset: range.offset, bytes }));
  let fileBytes = 0;
  await transfer(client, stream, deadlineFor(bytes, fixedMs), signal, async () => {
    fileBytes = await ended;
  });
  return { content: content.take(), fileBytes };
}

function deadlineFor(bytes: number, fixedMs: number): number {
  return fixedMs + Math.ceil((bytes / FLOOR_BYTES_PER_S) * 1000);
}

/** Gives a transfer its deadline, and abandons it in the guest when it is cut short. */
async function transfer(
  client: AgentClient,
  stream: number,
  deadlineMs: number,
  signal: AbortSignal,
  work: () => Promise<void>,
  stop?: () => void,
): Promise<void> {
  try {
    await client.time.within(work(), deadlineMs, "a file transfer", signal);
  } catch (error) {
    stop?.();
    if (error instanceof AgentError) throw error;
    client.endStream(stream);
    client.send(Message.CANCEL, stream);
    throw new AgentError(signal.aborted ? "aborted" : "agent_silent", "the file transfer was cut short", {
      cause: error,
    });
  }
}
