import type { AgentClient } from "../guest/agent-client.ts";
import type { Qmp } from "./qemu/qmp.ts";

/** A clone that is awake. */
export interface RunningMachine {
  qmp: Qmp;
  agent: AgentClient;
  /** QEMU's own */
  pid: number;
  /** The only directory QEMU may write */
  dir: string;
  /** Once it has been copied it does not go on */
  staysStill: boolean;
}
