import { badRequest } from "../engine-error.ts";

/** How many tasks led to a request: what programs in guests find in EPHEMERA_TASK_DEPTH, and pass on */
export const DEPTH_HEADER = "X-Ephemera-Task-Depth";

/** No header is depth 0. Throws 400 for anything but a number of tasks. */
export function depthOf(header: string | undefined): number {
  if (header === undefined) return 0;
  if (/^\d{1,9}$/.test(header)) return Number(header);
  throw badRequest(`${DEPTH_HEADER} must be a whole number`);
}
