/**
 * Adds up what `scripts/test` left in its results directory: one folder per suite with `log`, `status` and,
 * for Bun's suites, `junit.xml`. Lists failures and skips; the last line is `N passed, N failed[, N skipped]`.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface SuiteFiles {
  name: string;
  /** Everything the suite printed */
  log: string;
  /** Exit status of the suite's command */
  status: number;
  /** Bun's JUnit report; null for suites that end with a count line */
  junit: string | null;
}

export interface SuiteCount {
  passed: number;
  failed: number;
  skipped: number;
  failures: string[];
  skips: string[];
}

const COUNT_LINE = /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/gm;
const TEST_CASE = /<testcase ([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g;
const ENTITIES: Record<string, string> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'", "#10": "\n" };

/** A suite that fails without counting a failure, or that counts nothing, is one failure itself. */
export function countSuite(suite: SuiteFiles): SuiteCount {
  const count = suite.junit === null ? countLine(suite) : countJunit(suite.junit);
  const unreported = closingFailures(suite.log) - count.failed;
  if (suite.junit !== null && unreported > 0) {
    count.failed += unreported;
    count.failures.push(`${suite.name}: ${unreported} error(s) outside any test; see its output`);
  }
  if (suite.status !== 0 && count.failed === 0) {
    count.failed = 1;
    count.failures.push(`${suite.name}: ended with status ${suite.status}${statusHint(suite.status)}`);
  } else if (count.passed + count.failed + count.skipped === 0) {
    count.failed = 1;
    count.failures.push(`${suite.name}: counted no test`);
  }
  return count;
}

function countLine(suite: SuiteFiles): SuiteCount {
  const last = [...suite.log.matchAll(COUNT_LINE)].at(-1);
  const [passed, failed, skipped] = [1, 2, 3].map((group) => Number(last?.[group] ?? 0));
  const failures = failed ? [`${suite.name}: ${failed} failed; see its output`] : [];
  return { passed: passed!, failed: failed!, skipped: skipped!, failures, skips: [] };
}

function countJunit(xml: string): SuiteCount {
  const count: SuiteCount = { passed: 0, failed: 0, skipped: 0, failures: [], skips: [] };
  for (const [, attributes = "", body = ""] of xml.matchAll(TEST_CASE)) {
    const title = [
      attribute(attributes, "file"),
      ...outerNames(attributes),
      attribute(attributes, "name"),
    ].join(" > ");
    if (body.includes("<skipped")) {
      count.skipped++;
      count.skips.push(title);
    } else if (body.includes("<failure") || body.includes("<error")) {
      count.failed++;
      count.failures.push(`${title}: ${attribute(body, "message").split("\n")[0]}`);
    } else {
      count.passed++;
    }
  }
  return count;
}

/** Bun writes the names of the enclosing `describe` blocks innermost first. */
function outerNames(attributes: string): string[] {
  const names = attribute(attributes, "classname");
  return names === "" ? [] : names.split(" > ").reverse();
}

function attribute(text: string, name: string): string {
  const value = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(text)?.[1] ?? "";
  return value.replace(/&([a-z]+|#10);/g, (whole, entity: string) => ENTITIES[entity] ?? whole);
}

/** Bun's console summary counts errors outside tests, its JUnit report does not. */
function closingFailures(log: string): number {
  return Number([...log.matchAll(/^ (\d+) fail$/gm)].at(-1)?.[1] ?? 0);
}

function statusHint(status: number): string {
  if (status === 124 || status === 137) return " (it ran into its time limit)";
  return status > 128 ? ` (signal ${status - 128})` : "";
}

function readSuites(resultsPath: string): SuiteFiles[] {
  return readdirSync(resultsPath)
    .sort()
    .map((name) => {
      const path = (file: string) => join(resultsPath, name, file);
      const read = (file: string) => (existsSync(path(file)) ? readFileSync(path(file), "utf8") : "");
      const isBunSuite = read("log").startsWith("bun test ") || existsSync(path("junit.xml"));
      return {
        name,
        log: read("log"),
        status: Number(read("status") || 1),
        junit: isBunSuite ? read("junit.xml") : null,
      };
    });
}

function main(resultsPath: string): number {
  const counts = readSuites(resultsPath).map((suite) => ({ name: suite.name, ...countSuite(suite) }));
  const total = (key: "passed" | "failed" | "skipped") => counts.reduce((sum, count) => sum + count[key], 0);
  for (const count of counts) {
    console.log(`${count.name}: ${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
  }
  for (const count of counts) for (const skip of count.skips) console.log(`skipped: ${skip}`);
  for (const count of counts) for (const failure of count.failures) console.log(`FAILED: ${failure}`);
  const skipped = total("skipped");
  console.log(
    `${total("passed")} passed, ${total("failed")} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`,
  );
  return total("failed") === 0 && counts.length > 0 ? 0 : 1;
}

if (import.meta.main) process.exit(main(process.argv[2] ?? ".cache/results"));
