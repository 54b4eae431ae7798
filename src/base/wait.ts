/** Thrown when a wait ran out of time. `what` completes "timed out after N ms waiting for …". */
export class DeadlineError extends Error {
  constructor(what: string, deadlineMs: number) {
    super(`timed out after ${Math.round(deadlineMs)} ms waiting for ${what}`);
    this.name = "DeadlineError";
  }
}

/** Calls back after `durationMs`, unless the returned function is called before. */
export type StartTimer = (durationMs: number, expire: () => void) => () => void;

const afterTime: StartTimer = (durationMs, expire) => {
  const timer = setTimeout(expire, durationMs);
  return () => clearTimeout(timer);
};

/** Settles with `promise`, or rejects with `DeadlineError` after `deadlineMs`, or with the signal's reason. */
export function within<T>(
  promise: Promise<T>,
  deadlineMs: number,
  what: string,
  signal?: AbortSignal,
  after = afterTime,
): Promise<T> {
  if (signal?.aborted) {
    promise.catch(() => undefined);
    return Promise.reject(signal.reason);
  }
  return new Promise<T>((resolve, reject) => {
    const expire = () => settle(() => reject(new DeadlineError(what, deadlineMs)));
    const stopTimer = after(deadlineMs, expire);
    const onAbort = () => settle(() => reject(signal?.reason));
    const settle = (finish: () => void) => {
      stopTimer();
      signal?.removeEventListener("abort", onAbort);
      finish();
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    promise.then(
      (value) => settle(() => resolve(value)),
      (error) => settle(() => reject(error)),
    );
  });
}

/** Resolves after `durationMs`, or rejects with the signal's reason. */
export function sleep(durationMs: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  if (signal?.aborted) return Promise.reject(signal.reason);
  const timer = setTimeout(() => {
    signal?.removeEventListener("abort", onAbort);
    resolve();
  }, durationMs);
  const onAbort = () => {
    clearTimeout(timer);
    reject(signal?.reason);
  };
  signal?.addEventListener("abort", onAbort, { once: true });
  return promise;
}
