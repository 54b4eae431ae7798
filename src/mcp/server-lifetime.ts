import type { Logger } from "../base/logger.ts";

/** What a server is made of, and how each part ends. */
export interface Lifetime {
  transport: {
    onend?: (reason: string) => void;
    flushed(): Promise<void>;
    close(): Promise<void>;
  };
  service: AsyncDisposable;
  /** Where signals come from: `process` */
  signals: NodeJS.EventEmitter;
  /** Those that end it; by default all three */
  endSignals?: readonly EndSignal[];
  /** Ends the process at once with this code */
  exitNow: (code: number) => void;
  log: Logger;
  /** Time for everything to end after the first reason to, in `ms` */
  budgetMs?: number;
}

const SIGNAL_NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
const ALL_SIGNALS = ["SIGHUP", "SIGINT", "SIGTERM"] as const;

export type EndSignal = keyof typeof SIGNAL_NUMBERS;

const DEFAULT_BUDGET_MS = 2000;

/**
 * Resolves when the client has gone or a signal came, and the service has ended or the budget is spent.
 * A second signal ends the process at once.
 */
export async function serveUntilEnd(lifetime: Lifetime): Promise<void> {
  const { transport, log, budgetMs = DEFAULT_BUDGET_MS } = lifetime;
  using end = watchForEnd(lifetime);
  const reason = await end.first;
  log.info({ reason }, "shutting down");
  await finishWithin(budgetMs, () => closeAll(lifetime), log);
  await transport.close();
}

/** `first` resolves with the first reason to end. */
function watchForEnd({
  transport,
  signals,
  endSignals = ALL_SIGNALS,
  exitNow,
}: Lifetime): Disposable & { first: Promise<string> } {
  const { promise: first, resolve } = Promise.withResolvers<string>();
  let signalled = false;
  const listeners = endSignals.map((name) => {
    const listener = () => {
      if (signalled) exitNow(128 + SIGNAL_NUMBERS[name]);
      signalled = true;
      resolve(name);
    };
    signals.on(name, listener);
    return () => signals.off(name, listener);
  });
  transport.onend = resolve;
  return {
    first,
    [Symbol.dispose]() {
      for (const remove of listeners) remove();
    },
  };
}

/** Ends the service, which fails the calls in flight, and lets their answers out. */
async function closeAll({ service, transport }: Lifetime): Promise<void> {
  await service[Symbol.asyncDispose]();
  await new Promise(setImmediate); // failed calls write their answers in this turn
  await transport.flushed();
}

/** Waits for the work, but no longer than the budget. Its failure must not keep the process from ending. */
async function finishWithin(budgetMs: number, work: () => Promise<void>, log: Logger): Promise<void> {
  const { promise: expired, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(() => {
    log.warn({ budgetMs }, "the shutdown took too long and was cut short");
    resolve();
  }, budgetMs);
  try {
    await Promise.race([work(), expired]);
  } catch (error) {
    log.error({ err: error }, "the shutdown failed");
  } finally {
    clearTimeout(timer);
  }
}
