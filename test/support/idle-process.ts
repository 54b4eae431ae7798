import { identityOf, type ProcessIdentity } from "../../src/base/process-identity.ts";

/** A process that does nothing until it is disposed of. */
export class IdleProcess implements AsyncDisposable {
  readonly #child = Bun.spawn(["sleep", "600"], { stdin: "ignore" });
  readonly identity: ProcessIdentity = identityOf(this.#child.pid)!;

  get pid(): number {
    return this.#child.pid;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.exited;
  }
}

/** The identity of a process that has ended. */
export async function deadIdentity(): Promise<ProcessIdentity> {
  await using child = new IdleProcess();
  return child.identity;
}
