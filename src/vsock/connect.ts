import type { ConnectFrames } from "./frame-connection.ts";
import { connectTwin } from "./twin-connect.ts";

/** How bytes travel: the addon loaded from memory or from a file, or its twin in TypeScript */
export type CarrierName = "native-memfd" | "native-file" | "twin";

export const connectFrames: ConnectFrames = (options) => connectTwin(options);

export function carrierInUse(): CarrierName {
  return "twin";
}
