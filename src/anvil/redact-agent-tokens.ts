const AGENT_TOKEN = /"agent_token"\s*:\s*"(?:[^"\\]|\\.)*"/g;
const AGENT_TOKENS = /"agent_tokens"\s*:\s*\{[^{}]*\}/g;

/** JSON text of the daemon without the tokens of guest agents, which nobody beyond the adapter may see. */
export function redactAgentTokens(text: string): string {
  if (!text.includes("agent_token")) return text;
  return text.replace(AGENT_TOKEN, '"agent_token":"[redacted]"').replace(AGENT_TOKENS, '"agent_tokens":{}');
}
