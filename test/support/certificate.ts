import type { TemporaryDirectory } from "./temporary-directory.ts";

export interface Certificate {
  certPath: string;
  keyPath: string;
}

/** A new certificate for localhost, which signs itself. */
export function makeCertificate(directory: TemporaryDirectory, name: string): Certificate {
  const certPath = directory.join(`${name}.crt`);
  const keyPath = directory.join(`${name}.key`);
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const names = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const made = Bun.spawnSync([
    "openssl",
    "req",
    "-x509",
    ...curve,
    ...names,
    "-keyout",
    keyPath,
    "-out",
    certPath,
  ]);
  if (made.exitCode !== 0) throw new Error(`openssl made no certificate: ${made.stderr}`);
  return { certPath, keyPath };
}
