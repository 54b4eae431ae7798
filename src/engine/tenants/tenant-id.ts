/** No two dots in a row: ids may become parts of paths. */
export const TENANT_ID_PATTERN = /^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export const TENANT_ID_RULE =
  "tenant_id must be at most 64 letters, digits, '.', '_' or '-', start with a letter or digit, and not contain '..'";

export function isTenantId(text: string): boolean {
  return TENANT_ID_PATTERN.test(text);
}
