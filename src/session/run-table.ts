import { SessionError } from "./session-error.ts";
import { newRunId } from "./session-id.ts";
import type { SessionRun } from "./session-run.ts";
import { Tombstones } from "./tombstones.ts";

const MAX_FINISHED = 64;
const MAX_FINISHED_BYTES = 16_777_216;

/** The runs of one session that somebody may still ask about. */
export class RunTable {
  readonly #runs = new Map<string, SessionRun>();
  readonly #gone = new Tombstones();

  /** Gives the run an id, and makes room for it by forgetting the oldest that have ended. */
  keep(run: SessionRun): string {
    const id = newRunId();
    this.#runs.set(id, run);
    this.#forgetOldest();
    return id;
  }

  /** Throws `unknown_run` or `dead_run`. */
  find(runId: string, sessionId: string): SessionRun {
    const run = this.#runs.get(runId);
    if (run) return run;
    const cause = this.#gone.causeOf(runId);
    if (cause === null) {
      const next = "Pass a run_id that run returned for this session.";
      throw new SessionError("unknown_run", `there is no run '${runId}' in session ${sessionId}. ${next}`);
    }
    throw new SessionError("dead_run", `run ${runId} is gone: ${cause}. Start it again with run.`);
  }

  /** Forgets all runs; their ids answer with the cause. */
  loseAll(cause: string): void {
    for (const id of this.#runs.keys()) this.#gone.bury(id, cause);
    this.#runs.clear();
  }

  #forgetOldest(): void {
    const finished = [...this.#runs].filter(([, run]) => !run.isUnderWay);
    let sizeBytes = finished.reduce((sum, [, run]) => sum + run.sizeBytes, 0);
    while (finished.length > MAX_FINISHED || (sizeBytes > MAX_FINISHED_BYTES && finished.length > 1)) {
      const [id, run] = finished.shift()!;
      sizeBytes -= run.sizeBytes;
      this.#runs.delete(id);
      this.#gone.bury(id, "it had ended, and newer ones took its place");
    }
  }
}
