import type { RunningMachine } from "./running-machine.ts";

/** What one RELEASE can tell of, see docs/wire/agent.md */
const LONGEST_PAUSE_US = 3_600_000_000;

type Stoppable = Pick<RunningMachine, "agent" | "qmp">;

/** Lets a machine stand still; no answer its agent owes us is late because of it. */
export async function stopMachine({ agent, qmp }: Stoppable): Promise<void> {
  agent.time.stop();
  try {
    await qmp.execute("stop");
  } catch (error) {
    agent.time.goOn();
    throw error;
  }
}

/** Lets it go on, with its clock set on by what it stood still; runs that were held go on too. */
export async function continueMachine({ agent, qmp }: Stoppable): Promise<void> {
  await qmp.execute("cont");
  let lateUs = agent.time.goOn() * 1000;
  for (; lateUs > LONGEST_PAUSE_US; lateUs -= LONGEST_PAUSE_US) await agent.release(LONGEST_PAUSE_US);
  await agent.release(lateUs);
}
