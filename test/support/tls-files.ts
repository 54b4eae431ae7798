/**
 * Serves the files of a directory over TLS, to whatever name it is asked for by: `tls-files.ts DIRECTORY ADDRESS PORT`,
 * with cert.pem and key.pem in the directory. Prints `ready` when it listens.
 */
import { join, normalize } from "node:path";

const [directory = "", hostname = "", port = ""] = process.argv.slice(2);
Bun.serve({
  hostname,
  port: Number(port),
  tls: { cert: Bun.file(join(directory, "cert.pem")), key: Bun.file(join(directory, "key.pem")) },
  async fetch(request) {
    const { pathname } = new URL(request.url);
    const file = Bun.file(join(directory, normalize(pathname)));
    return (await file.exists())
      ? new Response(file)
      : new Response("there is no such file", { status: 404 });
  },
});
process.stdout.write("ready\n");
