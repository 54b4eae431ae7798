import { existsSync } from "node:fs";
import { SessionTable } from "../../../src/session/session-table.ts";
import type { ReplyFault } from "../../fake-vmm/agent-fault.ts";
import { CALL, runRequest, SILENT_LOG } from "../session/open-table.ts";
import { FaultySource } from "./faulty-source.ts";

/** One slot, so that an open shows whether the slot is free. Its end throws when a machine or a file is left. */
export class FaultyTable implements AsyncDisposable {
  readonly source = new FaultySource();
  readonly table: SessionTable;

  constructor() {
    const { source } = this;
    this.table = new SessionTable({ source, maxSessions: 1, idleMs: 600_000, callMs: 0, log: SILENT_LOG });
  }

  async open(): Promise<string> {
    return (await this.table.open(CALL)).sessionId;
  }

  /** A session whose agent meets the fault at the next request. */
  async openArmed(fault: ReplyFault): Promise<string> {
    const sessionId = await this.open();
    await this.table.run(sessionId, runRequest(`arm ${fault}`), CALL);
    return sessionId;
  }

  /** Throws when the slot is taken, or when what it holds is no session that works. */
  async expectFreeSlot(): Promise<void> {
    this.source.next({});
    const sessionId = await this.open();
    const { stdout } = await this.table.run(sessionId, runRequest("echo works"), CALL);
    if (stdout !== "works") throw new Error(`a session after the fault answered ${JSON.stringify(stdout)}`);
    await this.table.close(sessionId);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.table[Symbol.asyncDispose]();
    const left = this.source.vmms();
    const hasFiles = existsSync(this.source.runtimePath);
    this.source.removeFiles();
    if (left.length > 0 || hasFiles) throw new Error(`left behind: VMMs ${left}, files ${hasFiles}`);
  }
}
