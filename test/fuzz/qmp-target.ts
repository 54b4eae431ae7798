import { ok } from "node:assert/strict";
import { loadState } from "../../src/vm/qemu/migration.ts";
import { Qmp } from "../../src/vm/qemu/qmp.ts";
import { VmError } from "../../src/vm/vm-error.ts";
import type { FuzzTarget } from "./fuzz-target.ts";
import { split } from "./mutate.ts";

/** QEMU's side of a clone's start: whatever it says, what waits is settled once the connection ends. */
export const qmp: FuzzTarget = {
  name: "qmp",
  corpusPath: "corpus/qmp",
  words: [
    '{"return":{},"id":1}\r\n',
    '"id":2',
    '"error":',
    '{"QMP":',
    '"event":"MIGRATION"',
    '"data":{"status":',
    '"completed"',
    "null",
    "[",
    "}\n",
    "1e999",
    '"\\ud800"',
    '"__proto__":',
  ],
  tries: 20_000,
  async check(bytes, rng) {
    let sent = 0;
    const client = new Qmp(() => {
      sent++;
    });
    const waits = [
      client.open(60_000),
      client.execute("cont"),
      loadState(client, "/state", 60_000),
      client.failure,
    ];
    const outcomes = Promise.allSettled(waits);
    for (const piece of split(bytes, rng)) {
      client.receive(piece);
      if (rng.oneIn(4)) await Promise.resolve();
    }
    client.end("was ended");
    for (const outcome of await outcomes) {
      if (outcome.status === "fulfilled") continue;
      ok(outcome.reason instanceof VmError, `rejected with ${outcome.reason}`);
      ok(!/undefined|\[object/.test(outcome.reason.message), outcome.reason.message);
    }
    ok(sent <= 5, `${sent} commands were sent`);
  },
};
