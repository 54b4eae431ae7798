import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { DeadlineError } from "../../../src/base/wait.ts";
import { VmError } from "../../../src/vm/vm-error.ts";
import { rejection } from "../../support/rejection.ts";
import { ScriptedQemu } from "./scripted-qemu.ts";

describe("opening", () => {
  test("waits for the greeting, then leaves the negotiation", async () => {
    const qemu = new ScriptedQemu((command, self) => self.answer(command));
    const opening = qemu.qmp.open(1000);
    await Bun.sleep(1);
    expect(qemu.commands).toEqual([]);
    qemu.greet();
    await opening;
    expect(qemu.commands.map((command) => command.execute)).toEqual(["qmp_capabilities"]);
  });

  test("without a greeting ends at the deadline, or when the caller gives up", async () => {
    const { qmp } = new ScriptedQemu();
    expect(await rejection(qmp.open(5))).toBeInstanceOf(DeadlineError);
    expect((await rejection(qmp.open(1000, AbortSignal.abort(new Error("enough"))))).message).toBe("enough");
  });
});

describe("commands", () => {
  test("carry their arguments, and answers find theirs in any order", async () => {
    const qemu = new ScriptedQemu();
    const answers = Promise.all([qemu.qmp.execute("stop"), qemu.qmp.execute("migrate", { uri: "file:x" })]);
    const [stop, migrate] = qemu.commands;
    expect(migrate).toEqual({ execute: "migrate", id: migrate!.id, arguments: { uri: "file:x" } });
    expect(stop).not.toHaveProperty("arguments");
    qemu.answer(migrate!, "second");
    qemu.answer(stop!, "first");
    expect(await answers).toEqual(["first", "second"]);
  });

  test("that QEMU refuses reject with its words", async () => {
    const qemu = new ScriptedQemu((command, self) => self.refuse(command, "bad state"));
    const error = await rejection<VmError>(qemu.qmp.execute("cont"));
    expect(error).toBeInstanceOf(VmError);
    expect(error).toMatchObject({ code: "vmm_failed", message: "QEMU refused cont: bad state" });
  });

  test("without an answer end at their deadline, and a late answer harms nobody", async () => {
    const qemu = new ScriptedQemu();
    expect(await rejection(qemu.qmp.execute("stop", {}, 5))).toBeInstanceOf(DeadlineError);
    qemu.answer(qemu.commands[0]!);
    qemu.answer({ execute: "none", id: 4711 });
  });
});

describe("events", () => {
  test("reach every listener until it leaves", () => {
    const qemu = new ScriptedQemu();
    const seen: string[] = [];
    const leave = qemu.qmp.onEvent(({ event }) => seen.push(`a:${event}`));
    qemu.qmp.onEvent(({ event, data }) => seen.push(`b:${event}:${JSON.stringify(data)}`));
    qemu.event("STOP");
    leave();
    qemu.event("SHUTDOWN", { guest: true });
    expect(seen).toEqual(["a:STOP", "b:STOP:{}", 'b:SHUTDOWN:{"guest":true}']);
  });
});

describe("the end", () => {
  test("rejects what waits and all that comes later, with the first reason", async () => {
    const qemu = new ScriptedQemu();
    const waiting = [qemu.qmp.open(1000), qemu.qmp.execute("stop"), qemu.qmp.failure].map((each) =>
      rejection(each),
    );
    qemu.qmp.end("ended");
    qemu.qmp.end("was ended");
    waiting.push(rejection(qemu.qmp.execute("cont")));
    for (const error of await Promise.all(waiting)) expect(error.message).toBe("QEMU ended");
    qemu.event("STOP");
    expect(qemu.commands).toHaveLength(1);
  });

  test.each([
    ["a line that is not JSON", "}{\n", "sent a line that is not JSON"],
    ["a line that is no object", "7\n", "sent a line that is no object"],
    ["null", "null\n", "sent a line that is no object"],
    ["an endless line", "x".repeat(1_048_577), "sent an endless line"],
  ])("comes with %s", async (_, text, reason) => {
    const qemu = new ScriptedQemu();
    const waiting = rejection(qemu.qmp.execute("stop"));
    qemu.qmp.receive(Buffer.from(text));
    qemu.qmp.receive(Buffer.from(text));
    expect((await waiting).message).toBe(`QEMU ${reason}`);
  });

  test("does not come with messages of odd shapes", async () => {
    const qemu = new ScriptedQemu();
    const waiting = qemu.qmp.execute("stop");
    for (const odd of [[], {}, { id: "1" }, { event: 7 }, { event: "X", data: null }, { return: 1 }])
      qemu.say(odd);
    qemu.answer(qemu.commands[0]!, "all the same");
    expect(await waiting).toBe("all the same");
  });
});

test("how the bytes are split makes no difference", () => {
  const data = { text: "é € 😀" };
  const stream = Buffer.from(
    ["STOP", "RESUME", "MIGRATION"].map((event) => `${JSON.stringify({ event, data })}\r\n\n`).join(""),
  );
  fc.assert(
    fc.property(fc.array(fc.nat({ max: stream.byteLength }), { maxLength: 20 }), (cuts) => {
      const { qmp } = new ScriptedQemu();
      const seen: unknown[] = [];
      qmp.onEvent((event) => seen.push(event));
      const edges = [0, ...cuts.sort((a, b) => a - b), stream.byteLength];
      for (let at = 1; at < edges.length; at++) qmp.receive(stream.subarray(edges[at - 1], edges[at]));
      expect(seen).toEqual(["STOP", "RESUME", "MIGRATION"].map((event) => ({ event, data })));
    }),
    { seed: 10, numRuns: 200 },
  );
});

test("no bytes whatever make it throw", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          fc.uint8Array({ maxLength: 40 }),
          fc.json().map((text) => Buffer.from(`${text}\n`)),
        ),
      ),
      (pieces) => {
        const { qmp } = new ScriptedQemu();
        for (const piece of pieces) qmp.receive(piece);
      },
    ),
    { seed: 11, numRuns: 300 },
  );
});
