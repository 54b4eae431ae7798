import { OpenAPIHono } from "@hono/zod-openapi";
import type { EngineError } from "../engine-error.ts";
import { badRequest } from "../engine-error.ts";

/** What a request carries along besides itself. */
export interface EngineEnv {
  Variables: {
    /** Name of the token's owner; "" where no token is needed */
    client: string;
    /** Ends with the client's connection and with the route's deadline */
    signal: AbortSignal;
    /** To be called when the whole body is in memory */
    bodyIsHere: () => void;
  };
}

export type EngineApp = OpenAPIHono<EngineEnv>;

export function newEngineApp(): EngineApp {
  return new OpenAPIHono<EngineEnv>({
    defaultHook: (result) => {
      if (!result.success) throw refusalOf(result.error.issues);
    },
  });
}

/** The first thing that is wrong with a request. */
function refusalOf(issues: readonly { path: PropertyKey[]; message: string }[]): EngineError {
  const [issue] = issues;
  const where = issue?.path.map(String).join(".") ?? "";
  const what = issue?.message ?? "it is not what the API takes";
  const isWhole = what.startsWith(where) || what.endsWith(" required");
  if (where !== "" && isWhole) return badRequest(what);
  return badRequest(where === "" ? `invalid request: ${what}` : `invalid ${where}: ${what}`);
}
