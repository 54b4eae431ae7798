import { expect, test } from "bun:test";
import { renameSync, symlinkSync } from "node:fs";
import { connectToSocketFile } from "../../../src/base/socket-file.ts";
import { TemporaryDirectory } from "../../support/temporary-directory.ts";

function listen(unix: string) {
  let connections = 0;
  const server = Bun.listen({ unix, socket: { open: () => void connections++, data: () => undefined } });
  return { connections: () => connections, [Symbol.dispose]: () => server.stop(true) };
}

const connect = (unix: string) => Bun.connect({ unix, socket: { data: () => undefined } });

test("a socket is connected to, and a link to one is not", async () => {
  using directory = new TemporaryDirectory();
  using server = listen(directory.join("s.sock"));
  symlinkSync(directory.join("s.sock"), directory.join("link.sock"));
  (await connectToSocketFile(directory.join("s.sock"), connect)).end();
  await expect(connectToSocketFile(directory.join("link.sock"), connect)).rejects.toMatchObject({
    code: "ELOOP",
  });
  await expect(connectToSocketFile(directory.join("none.sock"), connect)).rejects.toMatchObject({
    code: "ENOENT",
  });
  expect(server.connections()).toBe(1);
});

test.skipIf(process.platform !== "linux")("a link that is put there meanwhile leads nowhere", async () => {
  using directory = new TemporaryDirectory();
  using own = listen(directory.join("s.sock"));
  using other = listen(directory.join("other.sock"));
  const socket = await connectToSocketFile(directory.join("s.sock"), async (unix) => {
    renameSync(directory.join("s.sock"), directory.join("moved.sock"));
    symlinkSync(directory.join("other.sock"), directory.join("s.sock"));
    return await connect(unix);
  });
  socket.end();
  expect([own.connections(), other.connections()]).toEqual([1, 0]);
});
