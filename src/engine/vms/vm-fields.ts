import { z } from "@hono/zod-openapi";
import { TENANT_ID_PATTERN, TENANT_ID_RULE } from "../../base/tenant-id.ts";
import { PROFILE_NAME_PATTERN, PROFILE_NAME_RULE } from "../profiles/profile.ts";
import { EGRESS_POLICY_RULE, egressPolicy } from "./vm-info.ts";

/** Ids of flocks and agents become parts of paths. */
const LABEL_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** Of routes below /vms/{id} */
export const vmIdParam = z.object({ id: z.string().max(128) });

/** A text of this pattern; "" and null count as left out. */
function optionalText(pattern: RegExp, rule: string) {
  return z
    .string()
    .regex(new RegExp(`^$|${pattern.source}`), rule)
    .nullish()
    .transform((text) => text || undefined);
}

export const profileField = optionalText(PROFILE_NAME_PATTERN, PROFILE_NAME_RULE);
export const labelField = optionalText(LABEL_PATTERN, "must be letters, digits, '.', '_' or '-'");
export const tenantIdField = optionalText(TENANT_ID_PATTERN, `tenant_id must be ${TENANT_ID_RULE}`);
export const tokenField = optionalText(/^[\x21-\x7e]{1,4096}$/, "must be a token without spaces");
export const egressPolicyField = z
  .enum(["", ...egressPolicy.options], { error: EGRESS_POLICY_RULE })
  .nullish()
  .transform((policy) => policy || undefined);
