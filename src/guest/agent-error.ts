import { Fault } from "../base/fault.ts";

export type AgentErrorCode =
  /** The connection to the agent ended or never came up */
  | "agent_lost"
  /** The agent sent something that is not in the protocol */
  | "agent_invalid"
  /** The agent speaks another protocol version, or is another build than its base says */
  | "agent_mismatch"
  /** No answer within the host's own deadline */
  | "agent_silent"
  /** The agent refused the request; `refusal` says which of docs/wire/agent.md's codes */
  | "agent_refused"
  | "aborted";

export class AgentError extends Fault<AgentErrorCode> {
  /** The agent's own code, such as "bad_cwd"; null unless `agent_refused` */
  readonly refusal: string | null;
  /** Symbolic errno in the guest, such as "ENOENT" */
  readonly errno: string | null;

  constructor(
    code: AgentErrorCode,
    message: string,
    detail: { cause?: unknown; refusal?: string; errno?: string | null } = {},
  ) {
    super(code, message, detail.cause);
    this.refusal = detail.refusal ?? null;
    this.errno = detail.errno ?? null;
  }
}
