import { SessionError } from "./session-error.ts";
import { newRunId } from "./session-id.ts";
import type { SessionRun } from "./session-run.ts";
import { Tombstones } from "./tombstones.ts";

/** Some hundred bytes each; it takes a client hours to get there */
const MAX_ENDED = 4096;
const MAX_WITH_OUTPUT = 64;
const MAX_OUTPUT_BYTES = 16_777_216;

/** The runs of one session that somebody may still ask about. */
export class RunTable {
  readonly #runs = new Map<string, SessionRun>();
  readonly #gone = new Tombstones();

  /** Gives the run an id. */
  keep(run: SessionRun): string {
    const id = newRunId();
    this.#runs.set(id, run);
    const makeRoom = () => this.#makeRoom();
    run.outcome.then(makeRoom, makeRoom);
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

  /** The oldest lose what is here of their output, and only after thousands themselves. */
  #makeRoom(): void {
    const ended = [...this.#runs].filter(([, run]) => !run.isUnderWay);
    const withOutput = ended.map(([, run]) => run).filter((run) => run.hasOutput);
    let sizeBytes = withOutput.reduce((sum, run) => sum + run.sizeBytes, 0);
    while (withOutput.length > MAX_WITH_OUTPUT || sizeBytes > MAX_OUTPUT_BYTES) {
      const run = withOutput.shift()!;
      sizeBytes -= run.sizeBytes;
      run.forgetOutput();
    }
    for (const [id] of ended.slice(0, Math.max(0, ended.length - MAX_ENDED))) {
      this.#runs.delete(id);
      this.#gone.bury(id, `it had ended, and ${MAX_ENDED} newer ones after it`);
    }
  }
}
