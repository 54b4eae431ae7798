import { z } from "@hono/zod-openapi";
import { isTenantId, TENANT_ID_RULE } from "../tenants/tenant-id.ts";
import { egressPolicy } from "./vm-info.ts";

/** Ids of flocks and agents become parts of paths. */
const LABEL = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** Of routes below /vms/{id} */
export const vmIdParam = z.object({ id: z.string().max(128) });

/** "" and null count as left out. */
export function orNothing<T extends z.ZodType>(schema: T) {
  return z.preprocess((value) => (value === "" || value === null ? undefined : value), schema);
}

export const labelField = orNothing(
  z.string().regex(LABEL, "must be letters, digits, '.', '_' or '-'").optional(),
);
export const tenantIdField = orNothing(z.string().refine(isTenantId, TENANT_ID_RULE).optional());
export const egressPolicyField = orNothing(egressPolicy.optional());
