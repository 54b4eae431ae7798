import * as z from "zod";
import { BASE_NAME_PATTERN } from "../../config/variables.ts";

/** Part of a path, so nothing that leads elsewhere */
export const PROFILE_NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
export const PROFILE_NAME_RULE = "profile must be letters, digits, '_' or '-'";

/** Of any VM */
export const MAX_CPUS = 8;
export const MAX_MEMORY_MIB = 65_536;
/** Of one argument of a program, and of one variable with its name: MAX_ARG_STRLEN of Linux, without the NUL */
export const MAX_WORD_BYTES = 131_071;
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** No command, argument or variable can hold a NUL. */
const text = z.string().refine((value) => !value.includes("\0"), "it must not have a NUL in it");
const environment = z
  .record(z.string().regex(VARIABLE_NAME), text)
  .refine(
    (variables) =>
      Object.entries(variables).every(
        ([name, value]) => Buffer.byteLength(`${name}=${value}`) <= MAX_WORD_BYTES,
      ),
    `a variable has ${MAX_WORD_BYTES} bytes at most, with its name`,
  );

/** `profiles/<name>/profile.yaml`: what a VM is and how it is given a prompt. Unknown keys are refused. */
export const profileSchema = z.strictObject({
  /** Default: IGN_MCP_CPUS */
  cpus: z.int().min(1).max(MAX_CPUS).optional(),
  /** Default: IGN_MCP_MEM */
  memory_mib: z.int().min(128).max(MAX_MEMORY_MIB).optional(),
  /** Name of the warm base; default: IGN_MCP_BASE, of the profile's size */
  base: z.string().regex(BASE_NAME_PATTERN).optional(),
  /** For the task's program */
  environment: environment.default({}),
  /** Comes before every prompt */
  system_prompt: text.default(""),
  /** File beside profile.yaml with what the VM may reach */
  egress: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/)
    .default("egress.json"),
  /** Shell text, run in /workspace of the guest. Its stdout is the task's output */
  task_command: text.refine((value) => value !== "", "it must not be empty"),
  /** How it gets the prompt: on stdin, or as one more argument */
  prompt: z.enum(["stdin", "argument"]).default("stdin"),
});

export type ProfileSpec = z.infer<typeof profileSchema>;

export interface Profile extends ProfileSpec {
  name: string;
  /** Of the egress rules; the file may be missing */
  egressPath: string;
}
