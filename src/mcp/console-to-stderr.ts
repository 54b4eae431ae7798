import { Console } from "node:console";

/** stdout belongs to the protocol: one stray console.log in any library would corrupt it. */
export function sendConsoleToStderr(): void {
  Object.assign(globalThis.console, new Console(process.stderr, process.stderr), {
    write(...parts: (string | Uint8Array)[]): number {
      for (const part of parts) process.stderr.write(part);
      return parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0);
    },
  });
}
