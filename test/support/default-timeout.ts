import { setDefaultTimeout } from "bun:test";

/**
 * Bun fails a test after 5 s unless told otherwise, which a busy machine needs for one process. Bun knows no such setting
 * and forgets this one behind the first file: it is for a file run by hand, whole suites get theirs from scripts/test.
 */
setDefaultTimeout(120_000);
