import { readFileSync } from "node:fs";
import { isMap, isScalar, LineCounter, parseDocument, type Scalar } from "yaml";
import { nearestName } from "../base/nearest-name.ts";
import { ConfigError } from "../config/config-error.ts";
import { isSettingName, SETTINGS, type Settings } from "./settings.ts";

/**
 * Reads the settings of a YAML file: one mapping of known keys to plain values. A value that is null counts as left out.
 * Null when there is no such file. Throws `ConfigError`, which never quotes the file: it may hold a token.
 */
export function readConfigFile(path: string): Settings | null {
  const text = readText(path);
  return text === null ? null : parseSettings(text, path);
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw new ConfigError([`The adapter's configuration ${path} cannot be read (${code}).`]);
  }
}

function parseSettings(text: string, path: string): Settings {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  if (document.errors.length > 0) {
    const faults = document.errors.map(({ code, pos }) => `line ${lines.linePos(pos[0]).line}: ${code}`);
    throw new ConfigError([`${path} is not sound YAML (${faults.join("; ")}).`]);
  }
  if (document.contents === null) return {};
  if (!isMap(document.contents)) throw new ConfigError([`${path} must be a mapping of settings.`]);
  const settings: Settings = {};
  const problems: string[] = [];
  for (const { key, value } of document.contents.items) {
    const name = isScalar(key) ? String(key.value) : "(a key that is no text)";
    if (!isSettingName(name)) problems.push(unknownKey(name, path));
    else if (value !== null && !isScalar(value)) problems.push(`${name} in ${path} must be a single value.`);
    else if (value !== null && value.value !== null)
      settings[name] = { text: scalarText(value), origin: `${name} in ${path}` };
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return settings;
}

/** As it was written: a token of digits must not become a number on its way. */
function scalarText(scalar: Scalar): string {
  return typeof scalar.value === "string" ? scalar.value : (scalar.source ?? String(scalar.value));
}

function unknownKey(name: string, path: string): string {
  const known = Object.keys(SETTINGS);
  const nearest = nearestName(name, known);
  return `${JSON.stringify(name.slice(0, 80))} in ${path} is not a setting; ${nearest ? `did you mean ${nearest}?` : `the settings are ${known.join(", ")}.`}`;
}
