import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import type { SelfMadeCertificate } from "./self-made-certificate.ts";
import { TemporaryDirectory } from "./temporary-directory.ts";

/** An npm registry on loopback that has one package, greeting@1.0.0, whose module is a text. */
export class NpmRegistry implements Disposable {
  readonly #server: ReturnType<typeof Bun.serve>;
  /** Host and path of each request */
  readonly asked: string[] = [];

  constructor(certificate: SelfMadeCertificate | null) {
    const tarball = makePackage();
    const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      ...(certificate && { tls: certificate }),
      fetch: (request) => {
        const { origin, hostname, pathname } = new URL(request.url);
        this.asked.push(`${hostname}${pathname}`);
        if (pathname === "/greeting.tgz") return new Response(tarball);
        if (pathname !== "/greeting") return new Response("there is no such package", { status: 404 });
        const dist = { tarball: `${origin}/greeting.tgz`, integrity };
        const versions = { "1.0.0": { name: "greeting", version: "1.0.0", dist } };
        return Response.json({ name: "greeting", "dist-tags": { latest: "1.0.0" }, versions });
      },
    });
  }

  get port(): number {
    return this.#server.port!;
  }

  [Symbol.dispose](): void {
    this.#server.stop(true);
  }
}

function makePackage(): Buffer {
  using directory = new TemporaryDirectory();
  mkdirSync(directory.join("package"));
  writeFileSync(directory.join("package/package.json"), '{"name":"greeting","version":"1.0.0"}');
  writeFileSync(directory.join("package/index.js"), 'module.exports = "hello";\n');
  const { exitCode } = Bun.spawnSync(["tar", "-czf", "greeting.tgz", "package"], { cwd: directory.path });
  if (exitCode !== 0) throw new Error("tar made no package");
  return readFileSync(directory.join("greeting.tgz"));
}
