/** The longest waits for a VMM and for the agent in its guest. All in `ms`. */
export interface VmDeadlines {
  /** From spawn to QEMU's greeting; 50-70 ms on an idle machine */
  greetingMs: number;
  /** QEMU's answer to one command */
  commandMs: number;
  /** Loading the device state */
  restoreMs: number;
  /** Connect, handshake and HELLO together */
  connectMs: number;
  /** The agent's answer to CLONED */
  clonedMs: number;
  /** The program that shows that a clone can start one */
  probeMs: number;
  /** What a run's end may be late, after its own deadline or a kill */
  exitGraceMs: number;
  /** What a file transfer gets beyond the time its size takes */
  transferMs: number;
}

export const VM_DEADLINES: VmDeadlines = {
  greetingMs: 20_000,
  commandMs: 10_000,
  restoreMs: 20_000,
  connectMs: 15_000,
  clonedMs: 10_000,
  probeMs: 15_000,
  exitGraceMs: 10_000,
  transferMs: 30_000,
};
