/** A TLS record of a type. */
export function record(type: number, content: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(type, 3, 1, content.byteLength >> 8, content.byteLength & 0xff), content]);
}

/** The handshake message a TLS client begins with, for a server name or none; more extensions may follow it. */
export function clientHello(serverName: string | null, ...extensions: Uint8Array[]): Buffer {
  const all = serverName === null ? extensions : [serverNameExtension(serverName), ...extensions];
  const body = Buffer.concat([
    Buffer.of(3, 3),
    Buffer.alloc(32, 7),
    sized(1, Buffer.alloc(32, 9)),
    sized(2, Buffer.of(0x13, 0x01)),
    sized(1, Buffer.of(0)),
    sized(2, Buffer.concat(all)),
  ]);
  return Buffer.concat([Buffer.of(1), sized(3, body)]);
}

export function extension(type: number, content: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(type >> 8, type & 0xff), sized(2, content)]);
}

export function serverNameExtension(name: string): Buffer {
  return extension(0, sized(2, Buffer.concat([Buffer.of(0), sized(2, Buffer.from(name, "latin1"))])));
}

/** Behind its length in so many bytes. */
export function sized(lengthBytes: number, content: Uint8Array): Buffer {
  const length = Buffer.alloc(lengthBytes);
  length.writeUIntBE(content.byteLength, 0, lengthBytes);
  return Buffer.concat([length, content]);
}
