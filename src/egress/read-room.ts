import type { Socket } from "node:net";

/**
 * How much may be read from sockets and not be taken yet, together. A socket is read a chunk at a time, which may be
 * half a MiB; while too much is held, none is read. So it ends at the limit and one chunk, however many sockets there are.
 */
export class ReadRoom {
  readonly #limitBytes: number;
  readonly #wanting = new Set<Socket>();
  #heldBytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Lets the socket be read until it brings something. */
  want(socket: Socket): void {
    this.#wanting.add(socket);
    if (!this.#isFull) socket.resume();
  }

  hold(socket: Socket, bytes: number): void {
    this.#wanting.delete(socket);
    socket.pause();
    const wasFull = this.#isFull;
    this.#heldBytes += bytes;
    if (!wasFull && this.#isFull) for (const each of this.#wanting) each.pause();
  }

  release(bytes: number): void {
    const wasFull = this.#isFull;
    this.#heldBytes -= bytes;
    if (wasFull && !this.#isFull) for (const each of this.#wanting) each.resume();
  }

  forget(socket: Socket): void {
    this.#wanting.delete(socket);
  }

  get #isFull(): boolean {
    return this.#heldBytes >= this.#limitBytes;
  }
}
