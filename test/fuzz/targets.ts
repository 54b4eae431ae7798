import { agent } from "./agent-target.ts";
import { bundle, diffIndex } from "./bundle-targets.ts";
import {
  chunkedBody,
  clientHello,
  egressProfile,
  httpRequest,
  proxyConnection,
  socks5,
} from "./egress-targets.ts";
import type { FuzzTarget } from "./fuzz-target.ts";
import { lines } from "./line-target.ts";
import { baseManifest, imageManifest, seal } from "./manifest-targets.ts";
import { qmp } from "./qmp-target.ts";
import { frames, handshake } from "./wire-targets.ts";

/** Every parser in TypeScript of bytes from a guest, from QEMU, from a client, from another engine or from a file. */
export const TARGETS: readonly FuzzTarget[] = [
  handshake,
  frames,
  agent,
  qmp,
  lines,
  baseManifest,
  imageManifest,
  seal,
  clientHello,
  socks5,
  httpRequest,
  chunkedBody,
  egressProfile,
  proxyConnection,
  bundle,
  diffIndex,
];
