import { Fault } from "../base/fault.ts";
import { type ConsoleOutput, print } from "./console-output.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { formatTable } from "./table.ts";

/** What a check found. `warn` is for what works, but not as well as it could. */
export interface Finding {
  status: "ok" | "warn" | "fail";
  /** One sentence; for `warn` and `fail` with what to do */
  what: string;
}

/** One thing a session needs, by a name that never changes. A check that throws a `Fault` has failed. */
export interface Check {
  id: string;
  look: () => Finding | Promise<Finding>;
}

/** Does every check and prints the findings; ends with 1 when one has failed. */
export async function runDoctor(
  checks: readonly Check[],
  json: boolean,
  { stdout }: ConsoleOutput,
): Promise<ExitCode> {
  const findings = await Promise.all(checks.map(async (check) => ({ id: check.id, ...(await look(check)) })));
  if (json) await print(stdout, JSON.stringify(findings));
  else await print(stdout, formatTable(findings.map(({ id, status, what }) => [status, id, what])));
  return findings.some(({ status }) => status === "fail") ? EXIT.failed : EXIT.ok;
}

async function look(check: Check): Promise<Finding> {
  try {
    return await check.look();
  } catch (error) {
    if (error instanceof Fault) return { status: "fail", what: error.message };
    throw error;
  }
}
