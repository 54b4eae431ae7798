import { AdapterError } from "./adapter-error.ts";
import { Mutex } from "./mutex.ts";
import { claimSessionFile, readSessionFile, saveSessionFile } from "./session-file.ts";

/**
 * Names for VMs: `session_name` → `vm_id`. Every look-up and every change with its save has its turn, so nobody sees
 * a change that is not saved yet. A change that cannot be saved is undone.
 */
export class SessionStore implements AsyncDisposable {
  readonly #path: string | null;
  readonly #sessions: Map<string, string>;
  readonly #claim: AsyncDisposable | null;
  readonly #turn = new Mutex();

  private constructor(path: string | null, sessions: Map<string, string>, claim: AsyncDisposable | null) {
    this.#path = path;
    this.#sessions = sessions;
    this.#claim = claim;
  }

  /** Without a path the names last as long as the process. Rejects for a damaged file and for one in use. */
  static async open(path: string | null): Promise<SessionStore> {
    if (path === null) return new SessionStore(null, new Map(), null);
    const claim = await claimSessionFile(path);
    try {
      return new SessionStore(path, await readSessionFile(path), claim);
    } catch (error) {
      await claim[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The VM a call is about: `vmId` when it is given, else the one the name stands for. */
  resolve(vmId: string, sessionName: string): Promise<string> {
    return this.#turn.run(() => {
      if (vmId !== "") return vmId;
      if (sessionName === "") throw new AdapterError("bad_input", "vm ID or session name is required");
      const known = this.#sessions.get(sessionName);
      if (known !== undefined) return known;
      throw new AdapterError("unknown_session", `unknown session ${JSON.stringify(sessionName)}`);
    });
  }

  /** Rejects when the name is taken. It may still be taken by the time it is bound. */
  refuseTaken(sessionName: string): Promise<void> {
    return this.#turn.run(() => {
      if (this.#sessions.has(sessionName)) throw alreadyExists(sessionName);
    });
  }

  bind(sessionName: string, vmId: string): Promise<void> {
    return this.#turn.run(async () => {
      if (sessionName === "") throw new AdapterError("bad_input", "session name must be non-empty");
      if (vmId === "") throw new AdapterError("bad_input", "vm ID must be non-empty");
      if (this.#sessions.has(sessionName)) throw alreadyExists(sessionName);
      this.#sessions.set(sessionName, vmId);
      await this.#saveOr(() => this.#sessions.delete(sessionName));
    });
  }

  /** Removes every name of a VM. */
  removeVm(vmId: string): Promise<void> {
    return this.#turn.run(async () => {
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
    return this.#turn.run(async () => await this.#claim?.[Symbol.asyncDispose]());
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
