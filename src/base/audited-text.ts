const MAX_CHARACTERS = 240;
const SENSITIVE = /agent_token|authorization|bearer |secret|token/i;

/** An error's words as an audit may keep them: nothing that could be a secret, and not too many. */
export function auditedText(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "" || SENSITIVE.test(trimmed)) return "operation failed";
  return trimmed.length > MAX_CHARACTERS ? `${trimmed.slice(0, MAX_CHARACTERS)}...` : trimmed;
}
