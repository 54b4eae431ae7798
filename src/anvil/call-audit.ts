import { auditedText } from "../base/audited-text.ts";
import { AdapterError, DaemonError, sentenceOf } from "./adapter-error.ts";
import type { RuntimeAudit } from "./runtime-audit.ts";

/** What a call is about, as far as it is known. */
export interface AuditSubject {
  vmId?: string;
  sessionAlias?: string;
  /** What was made other than the VM, such as `flock "flock-1"`: for the sentence of an error, and in no record */
  made?: string;
}

/** Writes down how one call of a tool ended. */
export class CallAudit {
  readonly #audit: RuntimeAudit | null;
  readonly #tenantId: string;
  readonly #tool: { name: string; operation: string };

  /** Nothing is written without an audit. */
  constructor(audit: RuntimeAudit | null, tenantId: string, tool: { name: string; operation: string }) {
    this.#audit = audit;
    this.#tenantId = tenantId;
    this.#tool = tool;
  }

  /**
   * Does the part of a call from the request to the daemon on, and records its end. `work` may say more about the
   * subject as it learns it. A success that cannot be recorded becomes a failure.
   */
  async around<T>(subject: AuditSubject, work: (subject: AuditSubject) => Promise<T>): Promise<T> {
    let result: T;
    try {
      result = await work(subject);
    } catch (error) {
      await this.#recordFailure(subject, error);
      throw error;
    }
    await this.#recordSuccess(subject);
    return result;
  }

  async #recordSuccess(subject: AuditSubject): Promise<void> {
    try {
      await this.#append(subject, { result_code: "success" });
    } catch (error) {
      const about = subject.vmId ? ` for VM ${JSON.stringify(subject.vmId)}` : "";
      const made = subject.made ? ` and made ${subject.made}` : "";
      const text = `${this.#tool.operation} succeeded${about}${made}, but could not be recorded: ${sentenceOf(error)}`;
      throw new AdapterError("audit", text, error);
    }
  }

  async #recordFailure(subject: AuditSubject, failure: unknown): Promise<void> {
    try {
      await this.#append(subject, { result_code: "error", error: auditedError(failure) });
    } catch (error) {
      const text = `${sentenceOf(failure)}; failed to append runtime audit: ${sentenceOf(error)}`;
      throw new AdapterError("audit", text, error);
    }
  }

  async #append(
    { vmId, sessionAlias }: AuditSubject,
    end: { result_code: "success" | "error"; error?: string },
  ): Promise<void> {
    if (this.#audit === null || this.#tenantId === "") return;
    await this.#audit.append({
      timestamp: new Date().toISOString(),
      tenant_id: this.#tenantId,
      ...(vmId && { vm_id: vmId }),
      ...(sessionAlias && { session_alias: sessionAlias }),
      tool_name: this.#tool.name,
      daemon_operation: this.#tool.operation,
      ...end,
    });
  }
}

/** The part of an error that may be kept: no daemon's body and nothing that could be a secret. */
export function auditedError(error: unknown): string {
  if (error instanceof DaemonError) return `daemon returned status ${error.status}`;
  // Its own sentence may quote the daemon
  if (error instanceof AdapterError && error.code === "unfinished") return auditedError(error.cause);
  return auditedText(sentenceOf(error));
}
