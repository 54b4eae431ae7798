import { createSocket, type Socket } from "node:dgram";

const [TYPE_A, CLASS_IN, TTL_SECONDS] = [1, 1, 0];

/** A DNS server on loopback whose n-th answer about IPv4 is the n-th list of addresses; the last one stays. */
export class FakeDns implements Disposable {
  readonly #socket: Socket;
  /** Names asked for, of IPv4 only */
  readonly asked: string[] = [];

  private constructor(socket: Socket, answers: string[][]) {
    this.#socket = socket;
    socket.on("message", (query, from) => {
      const question = endOfName(query);
      const isV4 = query.readUInt16BE(question) === TYPE_A;
      if (isV4) this.asked.push(nameIn(query));
      const addresses = isV4 ? answers[Math.min(this.asked.length, answers.length) - 1]! : [];
      socket.send(answer(query, question + 4, addresses), from.port, from.address);
    });
  }

  static async start(...answers: string[][]): Promise<FakeDns> {
    const socket = createSocket("udp4");
    await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
    return new FakeDns(socket, answers);
  }

  /** As a resolver's `setServers` takes it */
  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`;
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }
}

/** RFC 1035, section 4: the question is behind twelve bytes of header. */
function endOfName(query: Buffer): number {
  let at = 12;
  while (query[at] !== 0) at += query[at]! + 1;
  return at + 1;
}

function nameIn(query: Buffer): string {
  const labels: string[] = [];
  for (let at = 12; query[at] !== 0; at += query[at]! + 1)
    labels.push(query.toString("latin1", at + 1, at + 1 + query[at]!));
  return labels.join(".");
}

function answer(query: Buffer, end: number, addresses: string[]): Buffer {
  const header = Buffer.from(query.subarray(0, 12));
  header.writeUInt16BE(0x8180, 2);
  header.writeUInt16BE(addresses.length, 6);
  header.writeUInt32BE(0, 8);
  const records = addresses.map((address) => {
    const record = Buffer.alloc(16);
    record.writeUInt16BE(0xc00c, 0);
    record.writeUInt16BE(TYPE_A, 2);
    record.writeUInt16BE(CLASS_IN, 4);
    record.writeUInt32BE(TTL_SECONDS, 6);
    record.writeUInt16BE(4, 10);
    record.set(address.split(".").map(Number), 12);
    return record;
  });
  return Buffer.concat([header, query.subarray(12, end), ...records]);
}
