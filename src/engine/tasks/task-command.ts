import { badRequest } from "../engine-error.ts";
import { MAX_WORD_BYTES, type Profile } from "../profiles/profile.ts";

/** What a run needs to give a prompt to a profile's program. */
export interface TaskCommand {
  command: string;
  /** Null for /dev/null */
  stdin: Uint8Array | null;
}

export interface TaskInput {
  prompt: string;
  /** What the program is to go on from, if it can; it finds the name in EPHEMERA_TASK_SESSION */
  session?: string | undefined;
  /** How many tasks led to this one, itself included; the program finds it in EPHEMERA_TASK_DEPTH */
  depth: number;
}

/** Throws 400 for a prompt that the profile's program cannot be given. */
export function taskCommand(profile: Profile, { prompt, session, depth }: TaskInput): TaskCommand {
  const { environment, system_prompt, task_command, prompt: way } = profile;
  const variables = {
    ...environment,
    EPHEMERA_TASK_DEPTH: String(depth),
    ...(session !== undefined && { EPHEMERA_TASK_SESSION: session }),
  };
  const exports = Object.entries(variables)
    .map(([name, value]) => `export ${name}=${quoted(value)}\n`)
    .join("");
  const text = withInstructions(system_prompt, prompt);
  if (way === "stdin") return { command: exports + task_command, stdin: new TextEncoder().encode(text) };
  requireWord(text, profile.name);
  return { command: `${exports}${task_command.trimEnd()} ${quoted(text)}`, stdin: null };
}

function withInstructions(systemPrompt: string, prompt: string): string {
  return systemPrompt === ""
    ? prompt
    : `[SYSTEM INSTRUCTIONS]\n${systemPrompt.trimEnd()}\n\n[USER TASK]\n${prompt}`;
}

/** Linux takes no other word of a command. */
function requireWord(text: string, profile: string): void {
  if (text.includes("\0"))
    throw badRequest(`the prompt has a NUL in it, and profile '${profile}' gives it as an argument`);
  const bytes = Buffer.byteLength(text);
  if (bytes <= MAX_WORD_BYTES) return;
  throw badRequest(
    `the prompt has ${bytes} bytes, with the instructions before it; profile '${profile}' gives it as an argument, which has ${MAX_WORD_BYTES} at most. Copy the text into the workspace, and name the file in the prompt`,
  );
}

/** One word of the shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
