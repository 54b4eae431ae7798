import { runCommand } from "./cli/run-command.ts";

process.exit(await runCommand(process.argv.slice(2)));
