import { createHash } from "node:crypto";
import type { Rng } from "../support/rng.ts";
import type { Answer, ChaosServer } from "./chaos-server.ts";

type Fields = Record<string, unknown>;

const VMM_KILLED = "its VMM was killed (SIGKILL)";
const PANICKED = "its guest kernel panicked";
/** What a killed VMM looks like to an open or a reset that waits for it */
const KILLED_EARLY = /(its VMM|QEMU) was killed \(SIGKILL\)/;
const MAX_FILE_BYTES = 100_000;
/** More than an answer holds */
const LONG_OUTPUT_BYTES = 100_000;

/** Deaths that the faults explain, counted over all lanes. */
export class DeathCount {
  byKill = 0;
}

/**
 * One client at a time with at most one session, and a model of what is in it. Every answer is compared with the model:
 * right, or an error that what was done explains.
 */
export class ChaosLane {
  readonly #server: ChaosServer;
  readonly #rng: Rng;
  readonly #deaths: DeathCount;
  readonly #files = new Map<string, string>();
  /** Ids it was given, whole */
  readonly ids: string[] = [];
  #session: { id: string; generation: number } | null = null;
  /** What was done, for the reader of a failure */
  readonly done: string[] = [];

  constructor(server: ChaosServer, rng: Rng, deaths: DeathCount) {
    this.#server = server;
    this.#rng = rng;
    this.#deaths = deaths;
  }

  async round(): Promise<void> {
    const action = this.#rng.pick(ACTIONS);
    if (this.#session === null) await this.#open();
    this.done.push(action);
    await this.#act(action);
  }

  async #act(action: (typeof ACTIONS)[number]): Promise<void> {
    switch (action) {
      case "compute":
        return await this.#compute();
      case "write":
        return await this.#write();
      case "recheck":
        return await this.#recheck();
      case "together":
        await Promise.all([this.#compute(), this.#compute(), this.#recheck()]);
        return;
      case "time out":
        return await this.#timeOut();
      case "cancel":
        return await this.#cancel();
      case "reset":
        return await this.#reset();
      case "close":
        return await this.close();
      case "kill a VMM":
        return this.#server.killVmm(this.#rng);
      case "pause a VMM":
        return await this.#server.pauseVmm(this.#rng, 50 + this.#rng.below(400));
      case "panic":
        return await this.#panic();
      case "kill all in the guest":
        return await this.#killAll();
      case "fill the disk":
        return await this.#fill();
    }
  }

  async #open(): Promise<void> {
    for (;;) {
      const { generation } = this.#server;
      const answer = await this.#server.call("open_session");
      if (answer.kind === "gone") continue;
      if (answer.kind === "error") {
        this.#explainFailedStart(answer, "open_failed");
        continue;
      }
      const id = String(answer.fields["session_id"]);
      this.ids.push(id);
      this.#session = { id, generation };
      this.#files.clear();
      return;
    }
  }

  async close(): Promise<void> {
    await this.#call("close");
    this.#session = null;
  }

  async #compute(): Promise<void> {
    const [a, b] = [this.#rng.below(100_000), this.#rng.below(100_000)];
    const fields = await this.#run(`echo $((${a} * ${b})); echo ${a} >&2; exit ${a % 100}`);
    if (fields) expectFields(fields, { stdout: `${a * b}\n`, stderr: `${a}\n`, exit_code: a % 100 });
  }

  async #write(): Promise<void> {
    const path = `/root/files/${this.#rng.below(5)}`;
    const content = this.#rng.bytes(this.#rng.below(MAX_FILE_BYTES));
    const content_base64 = Buffer.from(content).toString("base64");
    if (!(await this.#call("write_file", { path, content_base64 }))) return;
    this.#files.set(path, createHash("sha256").update(content).digest("hex"));
    await this.#recheck();
  }

  /** All files are there as they were written, and no others. */
  async #recheck(): Promise<void> {
    const expected = [...this.#files].map(([path, sha256]) => `${sha256}  ${path}\n`).sort();
    const fields = await this.#run("cd /root/files 2>/dev/null && sha256sum /root/files/*; true");
    if (!fields) return;
    const lines = String(fields["stdout"]).split(/(?<=\n)/);
    const found = lines.filter((line) => line !== "").sort();
    if (found.join("") !== expected.join(""))
      throw new Error(`expected ${expected.join("")} and found ${found.join("")}`);
  }

  async #timeOut(): Promise<void> {
    const fields = await this.#run("echo early; sleep 60", { timeout_s: 0.3 });
    if (fields) expectFields(fields, { timed_out: true, exit_code: 124 });
  }

  async #cancel(): Promise<void> {
    const session_id = this.#session!.id;
    const call = this.#server.begin("run", { session_id, command: "sleep 60", timeout_s: 50 });
    // A call that was taken back is answered at most once; nothing is due.
    call.answer.catch(() => undefined);
    await Bun.sleep(this.#rng.below(200));
    call.cancel();
    await this.#compute();
  }

  async #reset(): Promise<void> {
    const answer = await this.#call("reset");
    if (answer) this.#files.clear();
    await this.#recheckIfAlive();
  }

  async #panic(): Promise<void> {
    const fields = await this.#run("echo c > /proc/sysrq-trigger; sleep 50", {}, [PANICKED]);
    if (fields) throw new Error(`a guest that panics answered ${JSON.stringify(fields)}`);
  }

  /** The agent is process 1, which the kernel spares, and the shell does not kill itself. */
  async #killAll(): Promise<void> {
    const fields = await this.#run("kill -9 -1; echo alone");
    if (fields) expectFields(fields, { stdout: "alone\n", exit_code: 0 });
    await this.#recheckIfAlive();
  }

  async #fill(): Promise<void> {
    if (!(await this.#run("cat /dev/zero > /root/fill 2>/dev/null; true", { timeout_s: 50 }))) return;
    const content_base64 = Buffer.alloc(MAX_FILE_BYTES).toString("base64");
    const answer = await this.#send("write_file", { path: "/root/more", content_base64 });
    const isRefused = answer.kind === "error" && answer.code === "no_space";
    if (!isRefused) {
      if (this.#fieldsOf(answer)) throw new Error("a full disk took a file");
      return;
    }
    const long = await this.#run(`head -c ${LONG_OUTPUT_BYTES} /dev/zero | tr '\\0' x`);
    if (long) expectFields(long, { stdout_bytes: LONG_OUTPUT_BYTES, stdout_truncated: true, exit_code: 0 });
    await this.#run("rm -f /root/fill");
    await this.#recheckIfAlive();
  }

  async #recheckIfAlive(): Promise<void> {
    if (this.#session) await this.#recheck();
  }

  async #run(command: string, args: Fields = {}, causes: string[] = []): Promise<Fields | null> {
    return await this.#call("run", { command, ...args }, causes);
  }

  /** The result, or null when the session is lost for one of `causes`, a killed VMM or a killed server. */
  async #call(name: string, args: Fields = {}, causes: string[] = []): Promise<Fields | null> {
    if (this.#session === null) return null;
    return this.#fieldsOf(await this.#send(name, args), causes);
  }

  async #send(name: string, args: Fields): Promise<Answer> {
    const { id, generation } = this.#session!;
    if (generation !== this.#server.generation) return { kind: "gone" };
    return await this.#server.call(name, { session_id: id, ...args });
  }

  #fieldsOf(answer: Answer, causes: string[] = []): Fields | null {
    if (answer.kind === "ok") return answer.fields;
    const isFirst = this.#session !== null;
    const id = this.#session?.id ?? "";
    this.#session = null;
    if (answer.kind === "gone") return null;
    if (answer.code === "reset_failed") {
      this.#explainFailedStart(answer, "reset_failed");
      return null;
    }
    const isDeath = ["session_died", "dead_session"].includes(answer.code) && answer.message.includes(id);
    if (isDeath && causes.some((cause) => answer.message.includes(cause))) return null;
    if (!isDeath || !answer.message.includes(VMM_KILLED)) throw unexplained(answer);
    if (isFirst) this.#countKill();
    return null;
  }

  #explainFailedStart(answer: { code: string; message: string }, code: string): void {
    if (answer.code !== code || !KILLED_EARLY.test(answer.message)) throw unexplained(answer);
    this.#countKill();
  }

  #countKill(): void {
    this.#deaths.byKill++;
    if (this.#deaths.byKill > this.#server.vmmKills)
      throw new Error(`${this.#deaths.byKill} deaths by SIGKILL, but ${this.#server.vmmKills} kills`);
  }
}

const WEIGHTS = {
  compute: 6,
  write: 5,
  recheck: 3,
  together: 2,
  "time out": 1,
  cancel: 2,
  reset: 2,
  close: 3,
  "kill a VMM": 2,
  "pause a VMM": 2,
  panic: 1,
  "kill all in the guest": 2,
  "fill the disk": 1,
} as const;

const ACTIONS = (Object.keys(WEIGHTS) as (keyof typeof WEIGHTS)[]).flatMap((name) =>
  Array.from({ length: WEIGHTS[name] }, () => name),
);

function expectFields(fields: Fields, expected: Fields): void {
  for (const [name, value] of Object.entries(expected)) {
    if (fields[name] !== value)
      throw new Error(`${name} is not ${JSON.stringify(value)} in ${JSON.stringify(fields).slice(0, 500)}`);
  }
}

function unexplained(answer: { code: string; message: string }): Error {
  return new Error(`nothing explains ${answer.code}: ${answer.message}`);
}
