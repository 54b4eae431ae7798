import { Fault } from "../base/fault.ts";

/** One line for each thing that is wrong with the environment. The process ends with exit code 78. */
export class ConfigError extends Fault<"bad_config"> {
  constructor(problems: readonly string[]) {
    super("bad_config", problems.join("\n"));
  }
}
