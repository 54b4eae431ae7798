import { CommanderError } from "commander";
import { Fault } from "../base/fault.ts";
import { ConfigError } from "../config/config-error.ts";
import type { BaseActions } from "./base-commands.ts";
import { type ConsoleOutput, complain, ReaderGone } from "./console-output.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { loadBaseActions } from "./load-base-actions.ts";
import { createProgram } from "./program.ts";

/** Runs one command line (without the executable) and resolves with the exit code; all is printed by then. */
export async function runCommand(
  args: readonly string[],
  output: ConsoleOutput = process,
  loadActions: () => Promise<BaseActions> = loadBaseActions,
): Promise<ExitCode> {
  const interrupt = new AbortController();
  let code: ExitCode = EXIT.ok;
  const program = createProgram({
    output,
    loadActions,
    signal: interrupt.signal,
    onExit: (ended) => {
      code = ended;
    },
  });
  const onSigint = () => interrupt.abort();
  process.once("SIGINT", onSigint);
  try {
    await program.parseAsync(args.length === 0 ? ["serve"] : args, { from: "user" });
    return code;
  } catch (error) {
    if (interrupt.signal.aborted) return EXIT.interrupted;
    return await explain(error, output);
  } finally {
    process.off("SIGINT", onSigint);
  }
}

async function explain(error: unknown, output: ConsoleOutput): Promise<ExitCode> {
  if (error instanceof ReaderGone) return EXIT.ok;
  // commander has printed its own message
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (error instanceof Fault) {
    await complain(output, error.message);
    return error instanceof ConfigError ? EXIT.badConfig : EXIT.failed;
  }
  // Some of the runtime's errors have no stack
  await complain(output, `a bug: ${(error instanceof Error && error.stack) || String(error)}`);
  return EXIT.bug;
}
