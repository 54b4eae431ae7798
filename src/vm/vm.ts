import { rm } from "node:fs/promises";
import { Fault } from "../base/fault.ts";
import { sleep } from "../base/wait.ts";
import type { AgentClient } from "../guest/agent-client.ts";
import { AgentError } from "../guest/agent-error.ts";
import { type CloneIdentity, newCloneIdentity, tellCloned } from "../guest/clone-identity.ts";
import { openTunnel } from "../guest/open-tunnel.ts";
import { probeGuest } from "../guest/probe-guest.ts";
import { type RunCommand, type RunHandle, startRun } from "../guest/run-handle.ts";
import { serveTunnels, type TunnelHandler } from "../guest/serve-tunnels.ts";
import { type FileContent, type GetRange, getFile, putFile } from "../guest/transfer-file.ts";
import type { Tunnel } from "../guest/tunnel.ts";
import type { Activity } from "./activity.ts";
import { connectAgent } from "./connect-agent.ts";
import type { RunningMachine } from "./running-machine.ts";
import { Standstills } from "./standstills.ts";
import type { Checkpoint } from "./take-checkpoint.ts";
import { VmAutopsy } from "./vm-autopsy.ts";
import { VM_DEADLINES, type VmDeadlines } from "./vm-deadlines.ts";
import { describeDeath, type VmDeath } from "./vm-death.ts";
import { VmError } from "./vm-error.ts";
import type { VmTraces } from "./vm-traces.ts";
import type { VmmHandle } from "./vmm.ts";

/** A run that follows its open within this time does not meet the exercise. */
const EXERCISE_AFTER_MS = 50;
const NO_OPERATION: RunCommand = {
  command: new TextEncoder().encode(":"),
  stdin: null,
  cwd: null,
  timeoutMs: 10_000,
  maxOutputBytes: 0,
};

/** What a VM was cloned from. */
export interface VmOrigin {
  agentBuild: string;
  takeCheckpoint(machine: RunningMachine, signal: AbortSignal): Promise<Checkpoint>;
}

/** A clone: a restored VMM and, once awake, the connection to its agent. Owns the VMM and its directory. */
export class Vm implements AsyncDisposable {
  /** What the guest was told it is */
  readonly identity: CloneIdentity;
  readonly #vmm: VmmHandle;
  readonly #dir: string;
  readonly #origin: VmOrigin;
  readonly #deadlines: VmDeadlines;
  readonly #autopsy: VmAutopsy;
  readonly #died = Promise.withResolvers<VmDeath>();
  readonly #ending = new AbortController();
  #agent: AgentClient | null = null;
  #activity: Activity | null = null;
  readonly #standstills = new Standstills();
  #hasRun = false;
  #disposal: Promise<void> | null = null;

  constructor(
    vmm: VmmHandle,
    dir: string,
    origin: VmOrigin,
    deadlines = VM_DEADLINES,
    identity = newCloneIdentity(),
  ) {
    this.identity = identity;
    this.#vmm = vmm;
    this.#dir = dir;
    this.#origin = origin;
    this.#deadlines = deadlines;
    this.#autopsy = new VmAutopsy(vmm);
    void this.#autopsy.death().then((death) => this.#die(death));
  }

  /** Settles with the first cause of death. Never settles for a VM that was disposed of alive. */
  get died(): Promise<VmDeath> {
    return this.#died.promise;
  }

  /** What there is to see of it, for the log. */
  traces(): VmTraces {
    return this.#autopsy.traces();
  }

  get vmmPid(): number {
    return this.#vmm.pid;
  }

  /**
   * Lets a paused clone go on and makes it one of its kind: its identity takes effect before the probe starts, and
   * both are answered before this resolves.
   */
  async awaken(signal: AbortSignal): Promise<void> {
    try {
      await this.#wake(signal);
    } catch (error) {
      const failure = await this.#explainWaking(error);
      if (failure instanceof Fault) failure.evidence = { ...this.traces() };
      throw failure;
    }
  }

  async #wake(signal: AbortSignal): Promise<void> {
    const resumed = this.#vmm.qmp.execute("cont");
    // Awaited only once the agent is connected; until then a failure is the connection's to tell.
    resumed.catch(() => undefined);
    this.#agent ??= await this.#connect(signal);
    // One round trip for both: the agent is done with one frame before it takes the next.
    const told = tellCloned(this.#agent, this.identity, signal, this.#deadlines.clonedMs);
    const probed = probeGuest(this.#agent, this.#deadlines.probeMs, signal);
    await Promise.all([resumed, told, probed]);
  }

  /** Warms the translator with what an open does, then stops the clone, so that it costs no CPU while it waits. */
  async exerciseAndPause(signal: AbortSignal): Promise<void> {
    await this.awaken(signal);
    await this.#vmm.qmp.execute("stop");
  }

  /** Warms the translator with what a run does, in a moment, unless a run comes first. Nobody waits for it. */
  exerciseSoon(): void {
    // What goes wrong is told by the VM's death.
    this.#exercise().catch(() => undefined);
  }

  async #exercise(): Promise<void> {
    await sleep(EXERCISE_AFTER_MS, this.#ending.signal);
    if (!this.#hasRun) await this.startRun(NO_OPERATION, this.#ending.signal).ended;
  }

  /** From now on, runs and transfers count as calls in flight. */
  countCallsIn(activity: Activity): void {
    this.#activity = activity;
  }

  startRun(command: RunCommand, signal: AbortSignal): RunHandle {
    const run = startRun(this.#connected(), command, signal, this.#deadlines.exitGraceMs);
    this.#hasRun = true;
    // Whoever started it hears of a failure from the run itself.
    this.#watched(run.ended).catch(() => undefined);
    return run;
  }

  putFile(path: string, content: Uint8Array, signal: AbortSignal): Promise<void> {
    return this.#watched(putFile(this.#connected(), path, content, signal, this.#deadlines.transferMs));
  }

  getFile(path: string, range: GetRange, signal: AbortSignal): Promise<FileContent> {
    return this.#watched(getFile(this.#connected(), path, range, signal, this.#deadlines.transferMs));
  }

  /**
   * Hands over each connection to the guest's 127.0.0.1:3128, until `signal` aborts; runs that start from now on have it
   * as their proxy. Resolves once the guest listens. A fork has no tunnel of its parent's, and has to be told again.
   */
  serveProxy(handler: TunnelHandler, signal: AbortSignal): Promise<void> {
    return this.#watched(serveTunnels(this.#connected(), handler, signal));
  }

  /** Connects to a port of the guest's 127.0.0.1. */
  connectGuest(port: number, signal: AbortSignal): Promise<Tunnel> {
    return this.#watched(openTunnel(this.#connected(), port, signal));
  }

  /** Makes a checkpoint of it; it goes on. */
  checkpoint(signal: AbortSignal): Promise<Checkpoint> {
    return this.copy((machine, untilEnd) => this.#origin.takeCheckpoint(machine, untilEnd), signal);
  }

  /** Lets `work` copy the machine, which goes on unless it `staysStill`. Rejects `paused` when it stands still already. */
  copy<T>(
    work: (machine: RunningMachine, signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
    staysStill = false,
  ): Promise<T> {
    const machine = { ...this.#machine(), staysStill };
    const untilEnd = AbortSignal.any([signal, this.#ending.signal]);
    return this.#watched(this.#standstills.copy(machine, () => work(machine, untilEnd)));
  }

  /** Lets it stand still, in its turn with copies. Calls wait, and their deadlines with them. */
  pause(): Promise<void> {
    return this.#standstills.pause(this.#machine());
  }

  /** Lets it go on, with its clock set right. */
  resume(): Promise<void> {
    return this.#standstills.resume(this.#machine());
  }

  /** Closes the agent's connection and takes no more calls; the VMM is its caller's from now on. */
  letGo(): void {
    this.#ending.abort(new VmError("closed", "the VM was let go"));
    this.#agent?.close();
    this.#disposal ??= Promise.resolve();
  }

  /** The agent's connection, for streams this class has no method for. */
  get agent(): AgentClient {
    return this.#connected();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#disposal ??= this.#dispose();
    return this.#disposal;
  }

  async #dispose(): Promise<void> {
    this.#ending.abort(new VmError("closed", "the VM was ended"));
    this.#agent?.close();
    await this.#vmm[Symbol.asyncDispose]();
    await this.#standstills.idle();
    await rm(this.#dir, { recursive: true, force: true });
  }

  #connect(signal: AbortSignal): Promise<AgentClient> {
    const onLost = (error: AgentError) => void this.#agentLost(error);
    const { connectMs: deadlineMs } = this.#deadlines;
    return connectAgent(this.#dir, this.#origin.agentBuild, { deadlineMs, signal, onLost });
  }

  #machine(): RunningMachine {
    const agent = this.#connected();
    return { qmp: this.#vmm.qmp, agent, pid: this.vmmPid, dir: this.#dir, staysStill: false };
  }

  #connected(): AgentClient {
    if (this.#disposal) throw new VmError("closed", "the VM was ended");
    if (!this.#agent) throw new VmError("closed", "the VM is not awake");
    return this.#agent;
  }

  /** An agent that misses the host's own deadline is as good as dead, and its VM with it. */
  async #watched<T>(work: Promise<T>): Promise<T> {
    using _call = this.#activity?.begin();
    try {
      return await work;
    } catch (error) {
      if (error instanceof AgentError && error.code === "agent_silent") this.#die({ kind: "agent_silent" });
      throw error;
    }
  }

  /** A VMM that dies takes the agent's connection along, and its own end says more. */
  async #explainWaking(error: unknown): Promise<unknown> {
    if (!(error instanceof AgentError)) return error;
    if (error.code === "agent_refused") return new VmError("clone_failed", wakingRefusal(error), error);
    if (error.code !== "agent_lost") return error;
    const death = await this.#autopsy.deathOfSilenced();
    if (death === null) return error;
    return new VmError("clone_failed", `the clone ended while it woke: ${describeDeath(death)}`, error);
  }

  async #agentLost(error: AgentError): Promise<void> {
    const death = await this.#autopsy.deathOfSilenced();
    this.#die(death ?? { kind: error.code === "agent_invalid" ? "agent_invalid" : "agent_lost" });
  }

  #die(death: VmDeath): void {
    if (!this.#disposal) this.#died.resolve(death);
  }
}

function wakingRefusal({ refusal, errno, message }: AgentError): string {
  const what = refusal === "probe_failed" ? "cannot start a program" : "does not take its identity";
  return `the clone ${what} (${errno ?? refusal}): ${message}`;
}
