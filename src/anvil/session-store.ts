import { AdapterError } from "./adapter-error.ts";
import { Mutex } from "./mutex.ts";
import { claimSessionFile, readSessionFile, saveSessionFile } from "./session-file.ts";

/**
 * Names for VMs: `session_name` → `vm_id`. Every look-up and every change with its save has its turn, so nobody sees
 * a change that is not saved yet. A change that cannot be saved is undone. The file belongs to this process from the first
 * turn on, not from the start: clients start servers only to list their tools.
 */
export class SessionStore implements AsyncDisposable {
  readonly #path: string | null;
  readonly #end: AbortSignal;
  readonly #turns = new Mutex();
  #sessions = new Map<string, string>();
  #claim: AsyncDisposable | null = null;

  private constructor(path: string | null, end: AbortSignal) {
    this.#path = path;
    this.#end = end;
  }

  /**
   * Without a path the names last as long as the process. Rejects for a damaged file; one in use is told by the calls.
   * `end` ends their waiting for it.
   */
  static async open(path: string | null, end: AbortSignal): Promise<SessionStore> {
    if (path !== null) await readSessionFile(path);
    return new SessionStore(path, end);
  }

  /** The VM a call is about: `vmId` when it is given, else the one the name stands for. */
  resolve(vmId: string, sessionName: string): Promise<string> {
    return this.#turn(() => {
      if (vmId !== "") return vmId;
      if (sessionName === "") throw new AdapterError("bad_input", "vm ID or session name is required");
      const known = this.#sessions.get(sessionName);
      if (known !== undefined) return known;
      throw new AdapterError("unknown_session", `unknown session ${JSON.stringify(sessionName)}`);
    });
  }

  /** Rejects when the name is taken. It may still be taken by the time it is bound. */
  refuseTaken(sessionName: string): Promise<void> {
    return this.#turn(() => {
      if (this.#sessions.has(sessionName)) throw alreadyExists(sessionName);
    });
  }

  bind(sessionName: string, vmId: string): Promise<void> {
    return this.#turn(async () => {
      if (sessionName === "") throw new AdapterError("bad_input", "session name must be non-empty");
      if (vmId === "") throw new AdapterError("bad_input", "vm ID must be non-empty");
      if (this.#sessions.has(sessionName)) throw alreadyExists(sessionName);
      this.#sessions.set(sessionName, vmId);
      await this.#saveOr(() => this.#sessions.delete(sessionName));
    });
  }

  /** Removes every name of a VM. */
  removeVm(vmId: string): Promise<void> {
    return this.#turn(async () => {
      const removed = [...this.#sessions].filter(([, bound]) => bound === vmId);
      if (removed.length === 0) return;
      for (const [name] of removed) this.#sessions.delete(name);
      await this.#saveOr(() => {
        for (const [name, bound] of removed) this.#sessions.set(name, bound);
      });
    });
  }

  /** Waits for the change under way and lets the next process in. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#turns.run(async () => await this.#claim?.[Symbol.asyncDispose]());
  }

  #turn<T>(work: () => T | Promise<T>): Promise<T> {
    return this.#turns.run(async () => {
      await this.#claimFile();
      return await work();
    });
  }

  async #claimFile(): Promise<void> {
    if (this.#path === null || this.#claim !== null) return;
    const claim = await claimSessionFile(this.#path, this.#end);
    try {
      this.#sessions = await readSessionFile(this.#path); // another process may have written since the start
    } catch (error) {
      await claim[Symbol.asyncDispose]();
      throw error;
    }
    this.#claim = claim;
  }

  async #saveOr(undo: () => void): Promise<void> {
    if (this.#path === null) return;
    try {
      await saveSessionFile(this.#path, this.#sessions);
    } catch (error) {
      undo();
      throw error;
    }
  }
}

function alreadyExists(sessionName: string): AdapterError {
  return new AdapterError("session_exists", `session ${JSON.stringify(sessionName)} already exists`);
}
