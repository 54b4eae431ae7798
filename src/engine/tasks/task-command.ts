import type { ProfileSpec } from "../profiles/profile.ts";

/** What a run needs to give a prompt to a profile's program. */
export interface TaskCommand {
  command: string;
  /** Null for /dev/null */
  stdin: Uint8Array | null;
}

/** `depth` is how many tasks led to this one, itself included; the program finds it in EPHEMERA_TASK_DEPTH. */
export function taskCommand(profile: ProfileSpec, prompt: string, depth: number): TaskCommand {
  const { environment, system_prompt, task_command, prompt: way } = profile;
  const variables = Object.entries({ ...environment, EPHEMERA_TASK_DEPTH: String(depth) });
  const exports = variables.map(([name, value]) => `export ${name}=${quoted(value)}\n`).join("");
  const text = withInstructions(system_prompt, prompt);
  if (way === "stdin") return { command: exports + task_command, stdin: new TextEncoder().encode(text) };
  return { command: `${exports}${task_command.trimEnd()} ${quoted(text)}`, stdin: null };
}

function withInstructions(systemPrompt: string, prompt: string): string {
  return systemPrompt === ""
    ? prompt
    : `[SYSTEM INSTRUCTIONS]\n${systemPrompt.trimEnd()}\n\n[USER TASK]\n${prompt}`;
}

/** One word of the shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
