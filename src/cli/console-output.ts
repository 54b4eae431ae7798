import type { Writable } from "node:stream";

/** Where a command writes: data to `stdout`, words for people to `stderr`. */
export interface ConsoleOutput {
  stdout: Pick<Writable, "write">;
  stderr: Pick<Writable, "write"> & { isTTY?: boolean };
}

/** Resolves when the text has left the process. */
export function print(stream: Pick<Writable, "write">, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(`${text}\n`, (error) => (error ? reject(error) : resolve()));
  });
}
