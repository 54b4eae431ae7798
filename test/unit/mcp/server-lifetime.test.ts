import { expect, test } from "bun:test";
import { EventEmitter } from "node:events";
import { type Lifetime, serveUntilEnd } from "../../../src/mcp/server-lifetime.ts";

function start(
  options: Pick<Partial<Lifetime>, "budgetMs" | "endSignals"> & { dispose?: () => Promise<void> } = {},
) {
  const steps: string[] = [];
  const warnings: string[] = [];
  const exits: number[] = [];
  const signals = new EventEmitter();
  const transport: Lifetime["transport"] = {
    flushed: async () => void steps.push("flushed"),
    close: async () => void steps.push("closed"),
  };
  const service = {
    [Symbol.asyncDispose]: async () => {
      await options.dispose?.();
      steps.push("disposed");
    },
  };
  const note = (_fields: unknown, message: string) => void warnings.push(message);
  const log = { debug() {}, info() {}, warn: note, error: note };
  const ended = serveUntilEnd({
    transport,
    service,
    signals,
    exitNow: (code) => void exits.push(code),
    log,
    ...(options.budgetMs !== undefined && { budgetMs: options.budgetMs }),
    ...(options.endSignals && { endSignals: options.endSignals }),
  });
  return { steps, warnings, exits, signals, transport, ended };
}

test("the end of input ends the service, then lets answers out, then closes", async () => {
  const { steps, transport, ended } = start();
  transport.onend?.("stdin ended");
  await ended;
  expect(steps).toEqual(["disposed", "flushed", "closed"]);
});

test.each(["SIGTERM", "SIGINT", "SIGHUP"])("%s ends it the same way", async (signal) => {
  const { steps, signals, ended, exits } = start();
  signals.emit(signal);
  await ended;
  expect(steps).toEqual(["disposed", "flushed", "closed"]);
  expect(exits).toEqual([]);
});

test("a signal that is not among those that end it does not", async () => {
  const { steps, signals, ended } = start({ endSignals: ["SIGTERM"] });
  signals.emit("SIGHUP");
  await Bun.sleep(1);
  expect(steps).toEqual([]);
  signals.emit("SIGTERM");
  await ended;
  expect(steps).toHaveLength(3);
});

test("a second signal ends the process at once", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { signals, ended, exits } = start({ dispose: () => promise });
  signals.emit("SIGTERM");
  expect(exits).toEqual([]);
  signals.emit("SIGINT");
  expect(exits).toEqual([130]);
  resolve();
  await ended;
});

test("sessions that do not end in time are left behind with a warning", async () => {
  const { steps, transport, ended, warnings } = start({ dispose: () => new Promise(() => {}), budgetMs: 20 });
  transport.onend?.("stdin ended");
  await ended;
  expect(steps).toEqual(["closed"]);
  expect(warnings).toEqual(["the shutdown took too long and was cut short"]);
});

test("a failure to end sessions does not keep the process from ending", async () => {
  const { steps, transport, ended, warnings } = start({ dispose: () => Promise.reject(new Error("stuck")) });
  transport.onend?.("stdin ended");
  await ended;
  expect(steps).toEqual(["closed"]);
  expect(warnings).toEqual(["the shutdown failed"]);
});

test("no signal listener is left behind", async () => {
  const { signals, transport, ended } = start();
  transport.onend?.("stdin ended");
  await ended;
  expect(signals.eventNames()).toEqual([]);
});
