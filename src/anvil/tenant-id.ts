const MAX_BYTES = 64;
const PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

export const TENANT_ID_RULE =
  'at most 64 of A-Z a-z 0-9 . _ - that start with a letter or digit, without ".."';

export function isTenantId(text: string): boolean {
  return text.length <= MAX_BYTES && PATTERN.test(text) && !text.includes("..");
}
