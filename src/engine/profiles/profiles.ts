import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { badRequest, jsonError } from "../engine-error.ts";
import claude from "./built-in/claude/profile.yaml" with { type: "text" };
import codex from "./built-in/codex/profile.yaml" with { type: "text" };
import gemini from "./built-in/gemini/profile.yaml" with { type: "text" };
import goose from "./built-in/goose/profile.yaml" with { type: "text" };
import shell from "./built-in/shell/profile.yaml" with { type: "text" };
import { PROFILE_NAME_PATTERN, PROFILE_NAME_RULE, type Profile, profileSchema } from "./profile.ts";

export const DEFAULT_PROFILE = "shell";
const BUILT_IN: Readonly<Record<string, string>> = { shell, goose, claude, codex, gemini };

/** Profiles by name: the operator's directory first, then those built in. Read anew for each VM. */
export class Profiles {
  readonly #dir: string;
  readonly #egressDir: string;

  constructor(dir: string, egressDir: string | null) {
    this.#dir = dir;
    this.#egressDir = egressDir ?? dir;
  }

  /** "" is the default one. Rejects with 400 for one that is unknown, 500 for one that is no profile. */
  async get(name: string): Promise<Profile> {
    const wanted = name === "" ? DEFAULT_PROFILE : name;
    if (!PROFILE_NAME_PATTERN.test(wanted)) throw badRequest(PROFILE_NAME_RULE);
    const text = (await this.#ownText(wanted)) ?? builtIn(wanted);
    if (text === undefined) throw badRequest(`unknown profile '${wanted}'`);
    const spec = parseProfile(wanted, text);
    return { ...spec, name: wanted, egressPath: join(this.#egressDir, wanted, spec.egress) };
  }

  /** Whether there is one of this name; anything may be asked. */
  async has(name: string): Promise<boolean> {
    return PROFILE_NAME_PATTERN.test(name) && ((await this.#ownText(name)) ?? builtIn(name)) !== undefined;
  }

  async #ownText(name: string): Promise<string | null> {
    try {
      return await readFile(join(this.#dir, name, "profile.yaml"), "utf8");
    } catch (error) {
      if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return null;
      throw error;
    }
  }
}

function builtIn(name: string): string | undefined {
  return Object.hasOwn(BUILT_IN, name) ? BUILT_IN[name] : undefined;
}

function parseProfile(name: string, text: string) {
  let value: unknown;
  try {
    value = parse(text, { maxAliasCount: 0 });
  } catch (error) {
    throw jsonError(500, "profile_invalid", `profile '${name}' is not YAML`, {}, error);
  }
  const parsed = profileSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const what = `${issue?.path.join(".") || "it"}: ${issue?.message}`;
  throw jsonError(500, "profile_invalid", `profile '${name}' cannot be used: ${what}`, {}, parsed.error);
}
