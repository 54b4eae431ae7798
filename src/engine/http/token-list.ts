import { BearerTokens, type TokenSource } from "../../config/bearer-tokens.ts";
import type { Environment } from "../../config/config.ts";

/** Where the tokens are, by precedence */
const SOURCES: readonly TokenSource[] = [
  ["EPHEMERA_API_TOKENS_FILE", "file"],
  ["EPHEMERA_API_TOKENS", "list"],
  ["ANVIL_API_TOKENS", "list"],
  ["EPHEMERA_API_TOKEN", "single"],
  ["ANVIL_API_TOKEN", "single"],
];

/** The tokens of the control plane. */
export class TokenList extends BearerTokens {
  constructor(env: Environment, now?: () => number) {
    super(env, SOURCES, now);
  }
}
