import type { Writable } from "node:stream";

/** Where a command writes: data to `stdout`, words for people to `stderr`. */
export interface ConsoleOutput {
  stdout: Pick<Writable, "write">;
  stderr: Pick<Writable, "write"> & { isTTY?: boolean };
}

/** Whoever read what is printed has left, as `head` does. Nothing is wrong with that. */
export class ReaderGone extends Error {}

/** Resolves when the text has left the process. Rejects with `ReaderGone` when nobody takes it. */
export function print(stream: Pick<Writable, "write">, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(`${text}\n`, (error) => {
      if (!error) resolve();
      else reject((error as NodeJS.ErrnoException).code === "EPIPE" ? new ReaderGone() : error);
    });
  });
}

/** Says why a command failed. It has failed also when nobody reads that. */
export async function complain({ stderr }: ConsoleOutput, text: string): Promise<void> {
  try {
    await print(stderr, `ignition-mcp: ${text}`);
  } catch (error) {
    if (!(error instanceof ReaderGone)) throw error;
  }
}
