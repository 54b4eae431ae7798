import type { VmDeadlines } from "../../../src/vm/vm-deadlines.ts";
import type { FakeQemuOptions } from "../../fake-vmm/fake-qemu.ts";

/** These waits are meant to end, but what comes before the fault in the same wait has to get through on a busy machine. */
const MS = 3000;

export interface FaultCase {
  name: string;
  options: FakeQemuOptions;
  /** What the error about it says */
  says: string;
  /** The waits whose end is the only way out of it */
  deadlines?: Partial<VmDeadlines>;
}

const PROTOCOL_BROKEN = "the agent broke its protocol";
const CONNECTION_ENDED = "the connection to the agent ended";

/** Every way a clone can fail to come up. */
export const START_FAULTS: FaultCase[] = [
  agent("no_ok", "did not answer CONNECT in time", { connectMs: MS }),
  agent("slow_ok", "did not answer CONNECT in time", { connectMs: MS }),
  agent("bad_ok", 'a line that is not "OK <number>"'),
  agent("endless_ok", "more than 128 bytes and no newline"),
  agent("dies_on_connect", "closed the connection before it answered CONNECT"),
  agent("wrong_nonce", "answered an earlier connection's hello"),
  agent("wrong_protocol", "speaks protocol 2, this binary 1"),
  agent("no_hello", "waiting for the agent's hello", { connectMs: MS }),
  agent("bad_hello", PROTOCOL_BROKEN),
  agent("bad_reply", PROTOCOL_BROKEN),
  agent("wrong_reply", PROTOCOL_BROKEN),
  agent("half_frame", CONNECTION_ENDED),
  agent("huge_length", PROTOCOL_BROKEN),
  agent("garbage", PROTOCOL_BROKEN),
  agent("dies_on_request", CONNECTION_ENDED),
  agent("resets", CONNECTION_ENDED),
  agent("vmm_dies_mid_reply", "the clone ended while it woke: its VMM was killed (SIGKILL)"),
  agent("silent", "the agent did not answer in time", { clonedMs: MS }),
  { name: "another build", options: { build: "bad" }, says: "the agent in the guest is build bad" },
  { name: "a probe that fails", options: { refusesProbe: true }, says: "cannot start a program" },
  vmm("no QMP greeting", { greeting: "nothing" }, "waiting for QEMU's greeting", { greetingMs: MS }),
  vmm("QMP garbage", { greeting: "garbage" }, "sent a line that is not JSON"),
  vmm("a QMP array", { greeting: "an_array" }, "sent a line that is no object"),
  vmm("an endless QMP line", { greeting: "an_endless_line" }, "sent an endless line"),
  vmm(
    "a complaint",
    { complaint: "cannot allocate memory" },
    "QEMU exited (status 1); it said: cannot allocate memory",
  ),
  vmm("a mute qmp_capabilities", { unanswered: ["qmp_capabilities"] }, "answer to qmp_capabilities", {
    commandMs: MS,
  }),
  vmm("a mute cont", { unanswered: ["cont"] }, "waiting for QEMU's answer to cont", { commandMs: MS }),
  vmm("a failed restore", { migration: "failed" }, "QEMU could not migrate-incoming"),
  vmm("an end during the restore", { migration: "exits" }, "QEMU exited (status 1)"),
  vmm("an endless restore", { migration: "never_ends" }, "waiting for QEMU's migrate-incoming", {
    restoreMs: MS,
  }),
];

/** What a session says that ended because of a fault in an answer. */
export const REPLY_CAUSES = {
  bad_reply: "the agent in its guest broke the protocol",
  wrong_reply: "the agent in its guest broke the protocol",
  half_frame: "the agent in its guest closed the connection",
  huge_length: "the agent in its guest broke the protocol",
  garbage: "the agent in its guest broke the protocol",
  dies_on_request: "the agent in its guest closed the connection",
  resets: "the agent in its guest closed the connection",
  vmm_dies_mid_reply: "its VMM was killed (SIGKILL)",
  silent: "the agent in its guest stopped answering",
} as const;

function agent(
  fault: NonNullable<FakeQemuOptions["fault"]>,
  says: string,
  deadlines: Partial<VmDeadlines> = {},
): FaultCase {
  return { name: fault, options: { fault }, says, deadlines };
}

function vmm(
  name: string,
  options: FakeQemuOptions,
  says: string,
  deadlines: Partial<VmDeadlines> = {},
): FaultCase {
  return { name, options, says, deadlines };
}
