import { afterEach, expect, jest, test } from "bun:test";
import { requestLimitMs } from "../../../src/anvil/request-limit.ts";
import { sendRequest } from "../../../src/anvil/send-request.ts";
import { FakeDaemon } from "../../contract/anvil/fake-daemon.ts";

const MINUTE_MS = 60_000;

afterEach(() => jest.useRealTimers());

test.each([
  ["GET", "/vms", 2],
  ["GET", "/vms/vm-1/workspace?path=tasks", 2],
  ["PUT", "/vms/vm-1/workspace?path=a", 2],
  ["POST", "/vms", 10],
  ["POST", "/snapshots/s/restore", 10],
  ["DELETE", "/snapshots/s", 10],
  ["PATCH", "/flocks/f/agents/a", 10],
  ["POST", "/flocks", 60],
  ["POST", "/flocks/f/broadcast", 24 * 60],
  ["POST", "/vms/vm-1/tasks", 24 * 60],
] as const)("%s %s may take the %i minutes the engine gives it, and little more", (method, path, minutes) => {
  const overMs = requestLimitMs(method, path) - minutes * MINUTE_MS;
  expect(overMs).toBeWithin(1, MINUTE_MS);
});

test("a daemon that takes a request and stays silent is given up, and the request ends", async () => {
  await using daemon = new FakeDaemon();
  const asked = daemon.fallSilent();
  jest.useFakeTimers();
  const target = { baseUrl: daemon.url, token: null };
  const sent = sendRequest(target, { method: "GET", path: "/vms", signal: new AbortController().signal });
  await asked;
  jest.advanceTimersByTime(3 * MINUTE_MS);
  await expect(sent).rejects.toThrow(
    `send daemon request: GET /vms to ${daemon.url}: no answer within 150 s, which is longer than a daemon takes. Look whether it hangs.`,
  );
});
