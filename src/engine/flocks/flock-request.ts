import { z } from "@hono/zod-openapi";
import { PROFILE_NAME_PATTERN, PROFILE_NAME_RULE } from "../profiles/profile.ts";
import { egressPolicyField, profileField, tenantIdField } from "../vms/vm-fields.ts";

const MAX_ROLES = 20;
const MAX_AGENTS = 100;
const MAX_ROLE_CHARACTERS = 64;
const PLAIN = String.raw`[^/\\\x00-\x1f\x7f-\x9f]`;
/** Not blank, no name of a directory, no separators of paths, nothing that cannot be printed */
const ROLE_PATTERN = new RegExp(String.raw`^(?!\s*(?:\.{1,2}\s*)?$)${PLAIN}+$`);
const NOT_BLANK = /\S/;

const ROLE_RULE = `role must be 1 to ${MAX_ROLE_CHARACTERS} characters, not '.' or '..', and without '/', '\\' and control characters`;
const ROLES_RULE = "roles must hold 1 to 20 roles";
const POST_RULE = "agent_id and body required";

/** It names agents, and these become parts of paths. */
const role = z
  .string()
  .max(MAX_ROLE_CHARACTERS, ROLE_RULE)
  .regex(ROLE_PATTERN, ROLE_RULE)
  .transform((text) => text.trim());

export const agentRequest = z.object({ role, profile: profileField });
export type AgentRequest = z.infer<typeof agentRequest>;

export const flockRequest = z
  .object({
    task: z.string().regex(NOT_BLANK, "task must be non-empty"),
    roles: z.array(role).min(1, ROLES_RULE).max(MAX_ROLES, ROLES_RULE),
    tenant_id: tenantIdField,
    egress_policy: egressPolicyField,
    /** One for each role, in their order; "" and missing ones are left to the role's name */
    profiles: z
      .array(z.string().regex(new RegExp(`^$|${PROFILE_NAME_PATTERN.source}`), PROFILE_NAME_RULE))
      .max(MAX_ROLES)
      .nullish(),
    /** 0 for the default */
    max_agents: z
      .int()
      .min(0)
      .max(MAX_AGENTS)
      .nullish()
      .transform((count) => count || MAX_ROLES),
  })
  .refine(({ roles, profiles }) => (profiles?.length ?? 0) <= roles.length, {
    message: "profiles must not be more than roles",
    path: ["profiles"],
  })
  .refine(({ roles, max_agents }) => roles.length <= max_agents, {
    message: "roles must not be more than max_agents",
    path: ["roles"],
  });
export type FlockRequest = z.infer<typeof flockRequest>;

const bodyField = z.string().regex(NOT_BLANK, "body required");

export const postRequest = z.object({
  agent_id: z.string({ error: POST_RULE }).regex(NOT_BLANK, POST_RULE),
  body: z.string({ error: POST_RULE }).regex(NOT_BLANK, POST_RULE),
});
export const broadcastRequest = z.object({ body: bodyField });
/** Who posts is known from elsewhere. */
export const guestPostRequest = z.object({ body: bodyField });
