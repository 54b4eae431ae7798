import { connect, type Socket } from "node:net";

/** A connection on which a test says what it wants, and sees all that comes. */
export class RawHttp {
  readonly #socket: Socket;
  #text = "";
  #isClosed = false;

  constructor(port: number) {
    this.#socket = connect(port, "127.0.0.1");
    this.#socket.on("data", (chunk: Buffer) => {
      this.#text += chunk.toString("latin1");
    });
    this.#socket.on("error", () => undefined); // told by "close" too
    this.#socket.on("close", () => {
      this.#isClosed = true;
    });
  }

  write(text: string): void {
    this.#socket.write(text);
  }

  /** All that came, once it matches. */
  async received(pattern: RegExp, withinMs = 10_000): Promise<string> {
    const deadline = performance.now() + withinMs;
    while (!pattern.test(this.#text)) {
      if (performance.now() > deadline || this.#isClosed)
        throw new Error(`${pattern} did not come, but ${JSON.stringify(this.#text.slice(-300))}`);
      await Bun.sleep(5);
    }
    return this.#text;
  }

  close(): void {
    this.#socket.destroy();
  }
}
