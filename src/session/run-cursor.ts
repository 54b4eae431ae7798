import { SessionError } from "./session-error.ts";

/** How far a reader is in both streams of a run, in `bytes` */
export interface RunOffsets {
  stdout: number;
  stderr: number;
}

const FORM = /^(\d{1,15}):(\d{1,15})$/;

export function formatCursor({ stdout, stderr }: RunOffsets): string {
  return `${stdout}:${stderr}`;
}

/** Throws `bad_cursor` on what no poll returned. */
export function parseCursor(cursor: string | null): RunOffsets {
  if (cursor === null) return { stdout: 0, stderr: 0 };
  const [, stdout, stderr] = FORM.exec(cursor) ?? [];
  if (stdout === undefined || stderr === undefined) {
    throw new SessionError(
      "bad_cursor",
      `cursor '${cursor.slice(0, 64)}' is none. Pass the cursor of the answer before, or leave it out for the start.`,
    );
  }
  return { stdout: Number(stdout), stderr: Number(stderr) };
}
