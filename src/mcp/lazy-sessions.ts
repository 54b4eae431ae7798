import { SessionError } from "../session/session-error.ts";
import type { SessionService } from "../session/session-service.ts";

/** The session layer, made by the first call that needs it. A failure to make it is told and tried again next time. */
export class LazySessions implements AsyncDisposable {
  readonly #create: () => Promise<SessionService>;
  #service: Promise<SessionService> | null = null;
  #disposed = false;

  constructor(create: () => Promise<SessionService>) {
    this.#create = create;
  }

  get(): Promise<SessionService> {
    if (this.#disposed) {
      return Promise.reject(
        new SessionError("shutting_down", "The server is shutting down. Start it again to go on."),
      );
    }
    this.#service ??= this.#create().catch((error: unknown) => {
      this.#service = null;
      throw error;
    });
    return this.#service;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    const made = await this.#service?.catch(() => null); // whoever asked for it was told
    await made?.[Symbol.asyncDispose]();
  }
}
