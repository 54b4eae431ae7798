import { expect, test } from "bun:test";
import { OwnedSessions } from "../../../src/session/owned-sessions.ts";
import { SessionError } from "../../../src/session/session-error.ts";
import { FakeSessions } from "../../contract/fake-sessions.ts";

const call = () => ({ signal: new AbortController().signal });

test("it lists and reaches only what it opened or forked", async () => {
  const all = new FakeSessions();
  const mine = new OwnedSessions(all);
  const theirs = new OwnedSessions(all);
  const { sessionId } = await mine.open(call());
  const { checkpointId } = await mine.checkpoint(sessionId, call());
  const forked = await mine.fork(checkpointId, call());
  await theirs.open(call());
  expect(mine.list().map((session) => session.sessionId)).toEqual([sessionId, forked.sessionId]);
  await mine.writeFile(sessionId, "/f", new Uint8Array(1), call());
  const refused = theirs.writeFile(sessionId, "/f", new Uint8Array(1), call());
  expect(await refused.catch((error: SessionError) => error.code)).toBe("unknown_session");
  expect(await theirs.close(forked.sessionId).catch((error: SessionError) => error.code)).toBe(
    "unknown_session",
  );
});

test("its end closes its sessions and spares those of others", async () => {
  const all = new FakeSessions();
  const mine = new OwnedSessions(all);
  const theirs = new OwnedSessions(all);
  await mine.open(call());
  await mine.open(call());
  const { sessionId } = await theirs.open(call());
  await mine[Symbol.asyncDispose]();
  expect(all.list().map((session) => session.sessionId)).toEqual([sessionId]);
  expect(await mine.open(call()).catch((error: SessionError) => error.code)).toBe("cancelled");
});

test("its end gives up an open under way, or closes what that still gets", async () => {
  class SlowSessions extends FakeSessions {
    readonly go = Promise.withResolvers<void>();
    aborted = false;
    override async open(given: { signal: AbortSignal }) {
      given.signal.addEventListener("abort", () => {
        this.aborted = true;
      });
      await this.go.promise;
      return await super.open(given);
    }
  }
  const all = new SlowSessions();
  const mine = new OwnedSessions(all);
  const opening = mine.open(call());
  const ended = mine[Symbol.asyncDispose]();
  expect(all.aborted).toBe(true);
  all.go.resolve();
  await Promise.all([opening, ended]);
  expect(all.list()).toEqual([]);
});

test("a failed open is passed on and owns nothing", async () => {
  class FailingSessions extends FakeSessions {
    override open(): never {
      throw new SessionError("session_cap", "all are in use");
    }
  }
  const mine = new OwnedSessions(new FailingSessions());
  expect(await mine.open(call()).catch((error: SessionError) => error.code)).toBe("session_cap");
  await mine[Symbol.asyncDispose]();
});
