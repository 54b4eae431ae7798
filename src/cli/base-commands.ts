import type { Config } from "../config/config.ts";
import { type ConsoleOutput, print } from "./console-output.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { ProgressLine } from "./progress-line.ts";
import { formatTable } from "./table.ts";

/** One base in the store. */
export interface BaseSummary {
  name: string;
  /** "base", or "checkpoint": one made of a running session */
  kind: string;
  /** ISO 8601, UTC */
  createdAt: string;
  /** On disk, in `bytes` */
  sizeBytes: number;
  accel: string;
  /** Why this binary cannot use it; null when it can */
  unusable: string | null;
}

/** What the VM layer does with bases. Rejects with a `Fault` whose sentence is for people. */
export interface BaseActions {
  buildBase(config: Config, options: BuildBaseOptions): Promise<unknown>;
  listBases(config: Config): Promise<readonly BaseSummary[]>;
  removeBase(config: Config, name: string): Promise<void>;
  /** Checks hashes and fit; resolves with the problems found, none when it can be used. */
  verifyBase(config: Config, name: string): Promise<readonly string[]>;
}

export interface BuildBaseOptions {
  name: string;
  /** Replace a base of that name */
  force: boolean;
  progress: (message: string) => void;
  signal: AbortSignal;
}

export class BaseCommands {
  readonly #config: Config;
  readonly #actions: BaseActions;
  readonly #output: ConsoleOutput;

  constructor(config: Config, actions: BaseActions, output: ConsoleOutput) {
    this.#config = config;
    this.#actions = actions;
    this.#output = output;
  }

  async build(name: string, force: boolean, signal: AbortSignal): Promise<ExitCode> {
    const startedMs = performance.now();
    {
      using line = new ProgressLine(this.#output.stderr);
      const progress = (message: string) => line.show(message);
      await this.#actions.buildBase(this.#config, { name, force, progress, signal });
    }
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
    await print(this.#output.stderr, `Base ${name} built in ${seconds} s.`);
    return EXIT.ok;
  }

  async list(json: boolean): Promise<ExitCode> {
    const bases = await this.#actions.listBases(this.#config);
    if (json) await print(this.#output.stdout, JSON.stringify(bases.map(toWire)));
    else if (bases.length > 0) await print(this.#output.stdout, toTable(bases));
    else await print(this.#output.stderr, "No bases yet. Build one: ignition-mcp base build");
    return EXIT.ok;
  }

  async remove(name: string): Promise<ExitCode> {
    await this.#actions.removeBase(this.#config, name);
    await print(this.#output.stderr, `Base ${name} removed.`);
    return EXIT.ok;
  }

  async verify(name: string): Promise<ExitCode> {
    const problems = await this.#actions.verifyBase(this.#config, name);
    for (const problem of problems) await print(this.#output.stdout, problem);
    if (problems.length === 0) {
      await print(this.#output.stderr, `Base ${name} is sound.`);
      return EXIT.ok;
    }
    await print(this.#output.stderr, `Base ${name} cannot be used. ${nextStep(name)}`);
    return EXIT.failed;
  }
}

/** A checkpoint cannot be built again. */
function nextStep(name: string): string {
  return name.startsWith("chk_")
    ? `Remove it: ignition-mcp base rm ${name}`
    : `Build it again: ignition-mcp base build ${name} --force`;
}

function toWire(base: BaseSummary): Record<string, unknown> {
  return {
    name: base.name,
    kind: base.kind,
    created_at: base.createdAt,
    size_bytes: base.sizeBytes,
    accel: base.accel,
    usable: base.unusable === null,
    reason: base.unusable,
  };
}

function toTable(bases: readonly BaseSummary[]): string {
  const rows = bases.map((base) => [
    base.name,
    base.kind,
    base.createdAt,
    `${(base.sizeBytes / 1_048_576).toFixed(0)} MiB`,
    base.accel,
    base.unusable ?? "usable",
  ]);
  return formatTable([["NAME", "KIND", "CREATED", "SIZE", "ACCEL", "STATE"], ...rows]);
}
