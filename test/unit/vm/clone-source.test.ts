import { expect, test } from "bun:test";
import { loadConfig } from "../../../src/config/load-config.ts";
import { type CloneMeans, CloneSource } from "../../../src/vm/clone-source.ts";
import type { Ground, OpenBase } from "../../../src/vm/open-base.ts";
import type { VmCgroups } from "../../../src/vm/vm-cgroups.ts";
import { CALL, SILENT_LOG } from "../session/open-table.ts";
import { FakeMachine } from "./fake-machine.ts";

const CHECKPOINT = `chk_${"a".repeat(26)}`;

/** A source of fake machines, and what it did, in order. */
function fakeSource(machines: FakeMachine[], cgroups: VmCgroups | null) {
  const steps: string[] = [];
  const ground = { jail: { kind: "setpriv", gaps: ["a gap"], argv: () => [] } } as unknown as Ground;
  const means: CloneMeans = {
    findGround: async () => ground,
    openBase: async () => ({ ...ground, paths: { manifestPath: "/nowhere" } }) as OpenBase,
    openCgroups: () => {
      steps.push("opens cgroups");
      return cgroups;
    },
    cloneBase: async (_base, _runtime, _signal, _deadlines, given) => {
      steps.push(given ? "clones under limits" : "clones");
      return await machines.shift()!.startVm();
    },
  };
  const log = { ...SILENT_LOG, warn: (_: unknown, message: string) => void steps.push(message) };
  const config = loadConfig({ HOME: "/nowhere", IGN_MCP_POOL: "0" });
  return { source: new CloneSource(config, log, means), steps };
}

const WARNING = "VMMs are confined less than they could be: a gap";
const claim = (source: CloneSource) => source.claim(CALL);
const fork = (source: CloneSource) => source.fork(CHECKPOINT, CALL);

test.each([
  ["claim", claim, fork],
  ["fork", fork, claim],
])(
  "a %s that is a server's first call warns of a weak jail and opens the limits of all clones",
  async (_, first, second) => {
    using one = new FakeMachine();
    using two = new FakeMachine();
    const cgroups = { [Symbol.dispose]: () => undefined } as VmCgroups;
    const { source, steps } = fakeSource([one, two], cgroups);
    await using _source = source;
    for (const make of [first, second]) await (await make(source))[Symbol.asyncDispose]();
    expect(steps).toEqual(["opens cgroups", WARNING, "clones under limits", "clones under limits"]);
  },
);

test("cgroups that there are none of are looked for once", async () => {
  using one = new FakeMachine();
  using two = new FakeMachine();
  const { source, steps } = fakeSource([one, two], null);
  await using _source = source;
  for (const make of [fork, claim]) await (await make(source))[Symbol.asyncDispose]();
  expect(steps).toEqual(["opens cgroups", WARNING, "clones", "clones"]);
});
