import { expect, test } from "bun:test";
import { newEngineApp } from "../../../src/engine/http/engine-app.ts";
import { answerErrors } from "../../../src/engine/http/error-answers.ts";
import { routeLimits } from "../../../src/engine/http/route-limits.ts";

function appWith(handler: (signal: AbortSignal) => Promise<void>) {
  const app = newEngineApp();
  const logged: unknown[] = [];
  const log = { debug() {}, info() {}, warn() {}, error: (fields: object) => logged.push(fields) };
  answerErrors(app, log);
  app.use("/slow", ...routeLimits({ deadlineMs: 20 }));
  app.get("/slow", async (c) => {
    await handler(c.get("signal"));
    return c.text("done");
  });
  return { app, logged };
}

test("a route that misses its deadline answers 504, whether it heeds its signal or not", async () => {
  const heedless = Promise.withResolvers<void>();
  const handlers = [
    (signal: AbortSignal) =>
      new Promise<void>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    () => heedless.promise,
  ];
  for (const handler of handlers) {
    const response = await appWith(handler).app.request("/slow");
    expect([response.status, await response.json()]).toEqual([504, { error: "no answer within 0.02 s" }]);
  }
  heedless.resolve();
});

test("a bug answers 500 without its words, which are logged", async () => {
  const { app, logged } = appWith(() => Promise.reject(new Error("the inside")));
  const response = await app.request("/slow");
  expect([response.status, await response.text()]).toEqual([500, '{"error":"internal error"}']);
  expect(String((logged[0] as { err: Error }).err)).toContain("the inside");
});
