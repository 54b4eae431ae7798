import { describeEnd, type VmmEnd } from "./vmm.ts";

/** Why a VM is no more, when nobody here ended it. */
export type VmDeath =
  | { kind: "vmm_exited"; end: VmmEnd }
  | { kind: "guest_panic" }
  | { kind: "guest_stopped" }
  | { kind: "agent_lost" }
  | { kind: "agent_invalid" }
  | { kind: "agent_silent" };

/** Completes "the session ended: …". Holds nothing the guest wrote. */
export function describeDeath(death: VmDeath): string {
  switch (death.kind) {
    case "vmm_exited":
      return `its VMM ${describeEnd(death.end)}`;
    case "guest_panic":
      return "its guest kernel panicked";
    case "guest_stopped":
      return "its guest was shut down or rebooted from inside";
    case "agent_lost":
      return "the agent in its guest closed the connection";
    case "agent_invalid":
      return "the agent in its guest broke the protocol";
    case "agent_silent":
      return "the agent in its guest stopped answering";
  }
}
