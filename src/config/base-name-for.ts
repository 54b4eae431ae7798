import type { Config } from "./config.ts";

/** The base sessions are cloned from. One with a network card is another machine, so it has another name. */
export function baseNameFor({ baseName, net }: Pick<Config, "baseName" | "net">): string {
  return net ? `${baseName}-net` : baseName;
}
