import type { RunningMachine } from "./running-machine.ts";
import { continueMachine, stopMachine } from "./stop-machine.ts";
import { VmError } from "./vm-error.ts";

/** What lets one machine stand still: copies and pauses, one after another, so that none undoes another. */
export class Standstills {
  #last: Promise<unknown> = Promise.resolve();

  /** Lets `work` copy it. Rejects `paused` when it stands still before, and lets it go on when `work` fails. */
  copy<T>(machine: RunningMachine, work: () => Promise<T>): Promise<T> {
    const { time } = machine.agent;
    return this.#inTurn(async () => {
      if (time.isStopped) throw new VmError("paused", "the VM is paused; resume it first");
      try {
        return await work();
      } catch (error) {
        // The cause is told. When QEMU does not let it go on, the deadlines of calls find that out.
        if (time.isStopped) await continueMachine(machine).catch(() => time.goOn());
        throw error;
      }
    });
  }

  pause(machine: RunningMachine): Promise<void> {
    return this.#inTurn(async () => {
      if (!machine.agent.time.isStopped) await stopMachine(machine);
    });
  }

  /** Also for one that is not paused, since a pause that failed may have been one. */
  resume(machine: RunningMachine): Promise<void> {
    return this.#inTurn(() => continueMachine(machine));
  }

  /** Resolves when none is under way. */
  async idle(): Promise<void> {
    await this.#last;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}
