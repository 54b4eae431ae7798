import { expect, test } from "bun:test";
import { countSuite, type SuiteFiles } from "../../scripts/sum-tests.ts";

function suite(parts: Partial<SuiteFiles>): SuiteFiles {
  return { name: "suite", log: "", status: 0, junit: null, ...parts };
}

const JUNIT = `<testsuites><testsuite name="a.test.ts">
  <testcase name="adds" classname="" file="a.test.ts" />
  <testcase name="&lt;x&gt;" classname="inner &gt; outer" file="a.test.ts"><skipped /></testcase>
  <testcase name="breaks" classname="outer" file="a.test.ts">
    <failure type="Error" message="boom &quot;1&quot;&#10;second line">stack</failure>
  </testcase>
</testsuite></testsuites>`;

test("the last count line of a log is what counts", () => {
  const count = countSuite(suite({ log: "1 passed, 0 failed\nmore\n7 passed, 0 failed, 2 skipped\n" }));
  expect(count).toMatchObject({ passed: 7, failed: 0, skipped: 2, failures: [] });
});

test("a log without a count line is a failure, whatever its status", () => {
  expect(countSuite(suite({ log: "all good\n" }))).toMatchObject({
    failed: 1,
    failures: ["suite: counted no test"],
  });
});

test("a suite that counts only successes but exits non-zero has failed", () => {
  const count = countSuite(suite({ log: "3 passed, 0 failed\n", status: 124 }));
  expect(count.failed).toBe(1);
  expect(count.failures[0]).toContain("time limit");
});

test("a JUnit report yields titles of skips and first lines of failures", () => {
  const count = countSuite(suite({ junit: JUNIT, status: 1 }));
  expect(count).toEqual({
    passed: 1,
    failed: 1,
    skipped: 1,
    failures: ['a.test.ts > outer > breaks: boom "1"'],
    skips: ["a.test.ts > outer > inner > <x>"],
  });
});

test("an error outside any test counts although the JUnit report omits it", () => {
  const count = countSuite(suite({ junit: JUNIT, status: 1, log: " 1 pass\n 2 fail\n" }));
  expect(count.failed).toBe(2);
});

test("a suite that crashed before its report was written has failed", () => {
  expect(countSuite(suite({ junit: "", status: 139 })).failures[0]).toContain("signal 11");
});
