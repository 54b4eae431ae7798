import { z } from "@hono/zod-openapi";
import { badRequest } from "../engine-error.ts";

/** How many tasks led to a request: what programs in guests find in EPHEMERA_TASK_DEPTH, and pass on */
export const DEPTH_HEADER = "X-Ephemera-Task-Depth";
const DEPTH = /^\d{1,9}$/;

/** For a route's definition */
export const depthHeaders = z.object({
  [DEPTH_HEADER]: z.string().optional().openapi({ pattern: DEPTH.source }),
});

/** No header is depth 0. Throws 400 for anything but a number of tasks. */
export function depthOf(header: string | undefined): number {
  if (header === undefined) return 0;
  if (DEPTH.test(header)) return Number(header);
  throw badRequest(`${DEPTH_HEADER} must be a whole number`);
}
