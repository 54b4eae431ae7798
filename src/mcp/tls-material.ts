import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { ConfigError } from "../config/config-error.ts";

/** PEM text of a certificate with its chain, and of the key that belongs to it. */
export interface TlsMaterial {
  cert: string;
  key: string;
}

/** Throws `ConfigError` for files that cannot be read or do not belong together. */
export function readTlsMaterial({ certPath, keyPath }: { certPath: string; keyPath: string }): TlsMaterial {
  const cert = readText(certPath);
  const key = readText(keyPath);
  let fits: boolean;
  try {
    fits = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch (error) {
    throw new ConfigError([
      `${certPath} and ${keyPath} are no PEM certificate and unencrypted private key (${(error as Error).message}).`,
    ]);
  }
  if (!fits) throw new ConfigError([`the key in ${keyPath} is not that of the certificate in ${certPath}.`]);
  return { cert, key };
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? "unknown error";
    throw new ConfigError([`the TLS file ${path} cannot be read (${reason}).`]);
  }
}
