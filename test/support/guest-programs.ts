import type { Vm } from "../../src/vm/vm.ts";
import { outputIn } from "./direct-vms.ts";

export const ECHO_PORT = 7007;

/** Sends everything back to whoever connects to `ECHO_PORT`, and the end behind it. */
export const ECHO_SERVER = `
import socket, threading
def serve(c):
    try:
        while (b := c.recv(65536)): c.sendall(b)
        c.shutdown(socket.SHUT_WR)
    except OSError: pass
    c.close()
s = socket.create_server(("127.0.0.1", ${ECHO_PORT}))
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
`;

/** Sends all on each of `count` connections at once, then the end, and says of how many all came back. */
export const ECHO_CLIENTS = `
import asyncio, sys, hashlib
count, size = int(sys.argv[1]), int(sys.argv[2])
async def one(n):
    r, w = await asyncio.open_connection("127.0.0.1", 3128)
    sent = bytes((n + i * 7) & 255 for i in range(256)) * (size // 256)
    async def send():
        w.write(sent); await w.drain(); w.write_eof()
    _, got = await asyncio.gather(send(), r.read(-1))
    w.close()
    return got == sent
async def main():
    print(sum(await asyncio.gather(*(one(n) for n in range(count)))))
asyncio.run(main())
`;

/** Holds a connection and writes to a file what becomes of it. */
export const HOLDER = `
import socket
try:
    c = socket.create_connection(("127.0.0.1", 3128))
    open("/tmp/state", "w").write("open")
    text = "read " + c.recv(100).decode()
except OSError as e: text = type(e).__name__
open("/tmp/state", "w").write(text)
`;

/** The command that runs a program in Python. */
export function python(program: string, ...args: (string | number)[]): string {
  return `python3 - ${args.join(" ")} <<'PROGRAM'\n${program}\nPROGRAM`;
}

/** Leaves it running. */
export async function inBackground(vm: Vm, program: string): Promise<void> {
  await outputIn(
    vm,
    `cat >/tmp/program.py <<'PROGRAM'\n${program}\nPROGRAM
    setsid python3 /tmp/program.py >/tmp/program.log 2>&1 </dev/null & `,
  );
}
