import { generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { isIPv4 } from "node:net";

export interface SelfMadeCertificate {
  /** Both in PEM */
  cert: string;
  key: string;
}

const DAY_MS = 86_400_000;
/** Object identifiers in DER: ecdsa-with-SHA256, commonName, subjectAltName, basicConstraints */
const ECDSA_SHA256 = seq(Buffer.from("06082a8648ce3d040302", "hex"));
const COMMON_NAME = Buffer.from("0603550403", "hex");
const ALT_NAME = Buffer.from("0603551d11", "hex");
const CONSTRAINTS = Buffer.from("0603551d13", "hex");

/** A certificate of these names and IPv4 addresses (RFC 5280), signed by itself and valid for a day around now. */
export function makeCertificate(...names: string[]): SelfMadeCertificate {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const issuer = seq(der(0x31, seq(COMMON_NAME, der(0x0c, Buffer.from("test")))));
  const altNames = seq(...names.map(altName));
  const extensions = seq(
    seq(ALT_NAME, der(0x04, altNames)),
    seq(CONSTRAINTS, der(0x04, seq(der(0x01, Buffer.of(0xff))))),
  );
  const content = seq(
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.concat([Buffer.of(1), randomBytes(15)])),
    ECDSA_SHA256,
    issuer,
    seq(time(-DAY_MS), time(DAY_MS)),
    issuer,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, extensions),
  );
  const signature = sign("sha256", content, privateKey);
  const whole = seq(content, ECDSA_SHA256, der(0x03, Buffer.concat([Buffer.of(0), signature])));
  return {
    cert: pem("CERTIFICATE", whole),
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

function altName(name: string): Buffer {
  return isIPv4(name) ? der(0x87, Buffer.from(name.split(".").map(Number))) : der(0x82, Buffer.from(name));
}

function der(tag: number, content: Uint8Array): Buffer {
  const { length } = content;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...size), content]);
}

function seq(...parts: Uint8Array[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function time(fromNowMs: number): Buffer {
  const digits = new Date(Date.now() + fromNowMs).toISOString().replace(/\D/g, "").slice(2, 14);
  return der(0x17, Buffer.from(`${digits}Z`));
}

function pem(label: string, content: Buffer): string {
  const lines = content.toString("base64").match(/.{1,64}/g)!;
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
