import { closeSync, constants, fstatSync, lstatSync, openSync } from "node:fs";

/** Linux's open(2); Node has no name for it */
const O_PATH = 0o10000000;

/**
 * Connects to the socket that lies at the path itself. A link there is refused, with ELOOP: whoever may write in that
 * directory could lead us to a socket of somebody else's. What is connected to is what was looked at.
 */
export async function connectToSocketFile<T>(
  path: string,
  connect: (path: string) => Promise<T>,
): Promise<T> {
  if (process.platform !== "linux") {
    refuseLink(path, lstatSync(path).isSymbolicLink());
    return await connect(path);
  }
  const file = openSync(path, O_PATH | constants.O_NOFOLLOW);
  try {
    refuseLink(path, fstatSync(file).isSymbolicLink());
    return await connect(`/proc/self/fd/${file}`);
  } finally {
    closeSync(file);
  }
}

function refuseLink(path: string, isLink: boolean): void {
  if (isLink) throw Object.assign(new Error(`${path} is a link, not a socket`), { code: "ELOOP" });
}
