import type { Logger } from "../base/logger.ts";
import type { Config } from "../config/config.ts";
import { CloneSource } from "../vm/clone-source.ts";
import type { SessionService } from "./session-service.ts";
import { SessionTable } from "./session-table.ts";

/** Sessions over real clones. Nothing is created before the first open. */
export async function createSessionService(config: Config, log: Logger): Promise<SessionService> {
  const { maxSessions, idleMs, callMs } = config;
  return new SessionTable({ source: new CloneSource(config, log), maxSessions, idleMs, callMs, log });
}
