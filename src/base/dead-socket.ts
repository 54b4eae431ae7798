import { lstatSync, rmSync } from "node:fs";
import { connect } from "node:net";

/** Removes a socket that nobody listens on any more. Anything else at the path is left alone. */
export async function removeDeadSocket(path: string): Promise<void> {
  const isSocket = lstatSync(path, { throwIfNoEntry: false })?.isSocket() ?? false;
  if (isSocket && !(await isListening(path))) rmSync(path, { force: true });
}

function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
