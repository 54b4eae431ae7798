import { baseUrlOf } from "../../config/listen-address.ts";
import type { EngineParts } from "../engine-parts.ts";
import { accessLog } from "./access-log.ts";
import { refuseBrowsers } from "./browser-guard.ts";
import { type EngineApp, newEngineApp } from "./engine-app.ts";
import { answerErrors } from "./error-answers.ts";
import { answerUnmatched } from "./unmatched-routes.ts";

/** Adds its routes to the app. */
export type RouteModule = (app: EngineApp) => void;

/** The whole HTTP API: what all requests have in common around the routes of the modules. */
export function createApp(parts: EngineParts, modules: readonly RouteModule[]): EngineApp {
  const app = newEngineApp();
  app.use(accessLog(parts.access, parts.log, (record, route) => parts.metrics.countRequest(record, route)));
  const { listen, publicUrl } = parts.settings;
  if (!("unix" in listen)) {
    const ownUrls = [baseUrlOf(listen), ...(publicUrl === null ? [] : [publicUrl])];
    app.use(refuseBrowsers(() => parts.gate.isOpen, ownUrls));
  }
  app.use(parts.gate.check);
  answerErrors(app, parts.log);
  for (const mount of modules) mount(app);
  answerUnmatched(app);
  return app;
}
