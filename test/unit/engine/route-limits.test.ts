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

test("a body that does not come in time answers 408 and ends the connection, whatever the route's own deadline", async () => {
  const app = newEngineApp();
  answerErrors(app, { debug() {}, info() {}, warn() {}, error() {} });
  app.use("/put", ...routeLimits({ deadlineMs: 60_000, bodyMs: 20 }));
  let isReached = false;
  app.post("/put", (c) => {
    isReached = true;
    return c.text("done");
  });
  const half = () => new ReadableStream({ start: (sender) => sender.enqueue(Buffer.from("half")) });
  for (const headers of [{ "content-length": "8" }, { "transfer-encoding": "chunked" }]) {
    const response = await app.request("/put", { method: "POST", body: half(), headers } as RequestInit);
    expect([response.status, await response.json()]).toEqual([
      408,
      { error: "the body did not come within 0.02 s" },
    ]);
    expect(response.headers.get("connection")).toBe("close");
  }
  expect(isReached).toBe(false);
});

test("a full disk answers 507 whoever met it", async () => {
  const full = Object.assign(new Error("write"), { code: "ENOSPC" });
  const response = await appWith(() => Promise.reject(full)).app.request("/slow");
  expect([response.status, await response.json()]).toEqual([
    507,
    { error: "insufficient disk space: the disk became full" },
  ]);
});

test("a bug answers 500 without its words, which are logged", async () => {
  const { app, logged } = appWith(() => Promise.reject(new Error("the inside")));
  const response = await app.request("/slow");
  expect([response.status, await response.text()]).toEqual([500, '{"error":"internal error"}']);
  expect(String((logged[0] as { err: Error }).err)).toContain("the inside");
});
