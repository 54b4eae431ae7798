import packageJson from "../../../package.json" with { type: "json" };
import type { EngineApp } from "./engine-app.ts";

/** What `docs/openapi.json` and GET /openapi.json say besides the routes. */
const DESCRIPTION = {
  openapi: "3.1.0",
  info: {
    title: "ignition-mcp engine",
    version: packageJson.version,
    description:
      'VMs, their tasks and files. Errors are JSON `{"error"}` or plain text, as each status says.',
  },
  security: [{ bearer: [] }, {}],
};

/** The API as an OpenAPI 3.1 document, from the definitions of the routes. */
export function openApiDocument(app: EngineApp): object {
  return app.getOpenAPI31Document(DESCRIPTION);
}

/** Serves the document. Mount it last. */
export function mountDocumentRoute(app: EngineApp): void {
  app.openAPIRegistry.registerComponent("securitySchemes", "bearer", { type: "http", scheme: "bearer" });
  app.get("/openapi.json", (c) => c.json(openApiDocument(app)));
}
