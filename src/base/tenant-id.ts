/** No two dots in a row: ids may become parts of paths. */
export const TENANT_ID_PATTERN = /^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Completes "… must be" */
export const TENANT_ID_RULE =
  'at most 64 of A-Z a-z 0-9 . _ - that start with a letter or digit, without ".."';

export function isTenantId(text: string): boolean {
  return TENANT_ID_PATTERN.test(text);
}
