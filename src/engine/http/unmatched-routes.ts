import type { EngineApp } from "./engine-app.ts";

/** 405 for a path that other methods have, 404 for one that does not exist. Call it when all routes are there. */
export function answerUnmatched(app: EngineApp): void {
  const routes = app.routes
    .filter(({ method }) => method !== "ALL")
    .map(({ method, path }) => ({ method, path, pattern: patternOf(path) }));
  app.notFound((c) => {
    const matching = routes.filter(({ pattern }) => pattern.test(c.req.path));
    const literal = matching.filter(({ path }) => path === c.req.path);
    const methods = (literal.length > 0 ? literal : matching).map(({ method }) => method);
    if (methods.length === 0) return c.json({ error: "not found" }, 404);
    c.header("Allow", [...new Set(methods)].sort().join(", "));
    return c.text("method not allowed", 405);
  });
}

function patternOf(path: string): RegExp {
  const parts = path.split("/").map((part) => (part.startsWith(":") ? "[^/]+" : RegExp.escape(part)));
  return new RegExp(`^${parts.join("/")}$`);
}
