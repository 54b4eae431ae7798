import type { ConnectFrames } from "./frame-connection.ts";
import { loadNative, type NativeOrigin } from "./load-native.ts";
import { nativeConnect } from "./native-connect.ts";
import { connectTwin } from "./twin-connect.ts";

/** What moves the bytes: the addon, loaded from memory or from a file, or its twin in TypeScript */
export type CarrierName = NativeOrigin | "twin";

interface Carrier {
  name: CarrierName;
  connect: ConnectFrames;
}

let chosen: Carrier | null = null;

/** `ConnectFrames` over the addon, or over its twin where the addon does not load. */
export const connectFrames: ConnectFrames = async (options) => carrier().connect(options);

/** Which carrier `connectFrames` uses; loads it when nothing was connected yet. */
export function carrierInUse(): CarrierName {
  return carrier().name;
}

function carrier(): Carrier {
  chosen ??= choose(process.env["IGN_MCP_CARRIER"]);
  return chosen;
}

/** `forced` is for tests: `native` or `twin`; anything else means the best there is. */
function choose(forced: string | undefined): Carrier {
  const twin: Carrier = { name: "twin", connect: connectTwin };
  if (forced === "twin") return twin;
  const failures: unknown[] = [];
  const loaded = loadNative((_origin, cause) => failures.push(cause));
  if (loaded !== null) return { name: loaded.origin, connect: nativeConnect(loaded.addon) };
  if (forced !== "native") return twin;
  throw new Error("IGN_MCP_CARRIER is native, but the addon does not load; run scripts/build-native", {
    cause: failures.at(-1),
  });
}
