/**
 * Measures the addon and its twin side by side, interleaved, in about 20 s: `bun bench/carrier.ts`.
 * The peer is a process of its own on the same cores, so absolute numbers say little; the ratios do.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConnectFrames, FrameConnection, FrameHandler } from "../src/vsock/frame-connection.ts";
import { MAX_PAYLOAD_BYTES } from "../src/vsock/frame-connection.ts";
import { loadNative } from "../src/vsock/load-native.ts";
import { nativeConnect } from "../src/vsock/native-connect.ts";
import { connectTwin } from "../src/vsock/twin-connect.ts";

const ROUNDS = 3;
const WINDOW_MS = 350;
const ECHO_COUNT = 3000;
const TINY_BYTES = 100;
const SMALL_FRAME_BYTES = 65_536;
const MESSAGE_FRAMES = 4;
const BUSY_MS = 8;
const IDLE_MS = 2;
const MIB = 1_048_576;

const directory = mkdtempSync(join(tmpdir(), "carrier-bench-"));
const path = join(directory, "peer.sock");

type Busy = "idle" | "often" | "always";

interface Measured {
  [metric: string]: number;
}

function open(connect: ConnectFrames, handler: Partial<FrameHandler>): Promise<FrameConnection> {
  const quiet: FrameHandler = { onFrames: () => undefined, onClose: () => undefined };
  return connect({ path, port: 7000, deadlineMs: 5000, handler: { ...quiet, ...handler } });
}

/** One request at a time, `us` */
async function echo(connect: ConnectFrames): Promise<Measured> {
  let answered = () => {};
  const connection = await open(connect, { onFrames: () => answered() });
  const payload = new Uint8Array(TINY_BYTES);
  const timesUs: number[] = [];
  for (let at = 0; at < ECHO_COUNT; at++) {
    const start = Bun.nanoseconds();
    await new Promise<void>((done) => {
      answered = done;
      connection.send(1, 1, payload);
    });
    timesUs.push((Bun.nanoseconds() - start) / 1000);
  }
  connection.close();
  timesUs.sort((a, b) => a - b);
  const at = (share: number) => timesUs[Math.floor(ECHO_COUNT * share)]!;
  return { "tiny call p50, us": at(0.5), "tiny call p99, us": at(0.99) };
}

/** What the peer pushes; `busy` sets the other work of the JS thread */
async function receive(
  connect: ConnectFrames,
  name: string,
  payloadBytes: number,
  busy: Busy = "idle",
): Promise<Measured> {
  let receivedBytes = 0;
  const connection = await open(connect, {
    onFrames: (frames) => {
      for (const frame of frames) receivedBytes += frame.payload.byteLength;
    },
  });
  const stopBurning = keepBusy(busy);
  const measured = await during(name, busy === "idle", async () => {
    connection.send(2, payloadBytes);
    await Bun.sleep(WINDOW_MS);
    return receivedBytes;
  });
  stopBurning();
  connection.close();
  return measured;
}

/** Frames sent as fast as the peer takes them */
async function send(
  connect: ConnectFrames,
  name: string,
  payloadBytes: number,
  frames: number,
): Promise<Measured> {
  let drained = () => {};
  const connection = await open(connect, { onDrain: () => drained() });
  connection.send(3, 0);
  const payload = new Uint8Array(payloadBytes);
  let sentBytes = 0;
  const measured = await during(name, true, async () => {
    const end = performance.now() + WINDOW_MS;
    while (performance.now() < end) {
      let mayGoOn = true;
      for (let at = 0; at < frames; at++) {
        mayGoOn = connection.send(4, 1, payload) && mayGoOn;
        sentBytes += payloadBytes;
      }
      if (mayGoOn) continue;
      await new Promise<void>((done) => {
        drained = done;
      });
    }
    return sentBytes - connection.pendingBytes;
  });
  connection.close();
  return measured;
}

async function during(name: string, withCpu: boolean, work: () => Promise<number>): Promise<Measured> {
  const start = performance.now();
  const cpu = process.cpuUsage();
  const mib = (await work()) / MIB;
  const { user, system } = process.cpuUsage(cpu);
  const measured: Measured = { [`${name}, MiB/s`]: mib / ((performance.now() - start) / 1000) };
  if (withCpu) measured[`${name}, CPU us per MiB`] = (user + system) / mib;
  return measured;
}

/** "often": 8 ms of every 10; "always": 8 ms in every turn of the event loop */
function keepBusy(busy: Busy): () => void {
  if (busy === "idle") return () => undefined;
  let isStopped = false;
  const turn = () => {
    if (isStopped) return;
    burn(BUSY_MS);
    if (busy === "always") setImmediate(turn);
    else setTimeout(turn, IDLE_MS);
  };
  setImmediate(turn);
  return () => {
    isStopped = true;
  };
}

function burn(timeMs: number): void {
  const end = performance.now() + timeMs;
  while (performance.now() < end);
}

async function measure(connect: ConnectFrames): Promise<Measured> {
  return {
    ...(await echo(connect)),
    ...(await receive(connect, "receive 64 KiB frames", SMALL_FRAME_BYTES)),
    ...(await receive(connect, "receive 4 MiB as 1 MiB frames", MAX_PAYLOAD_BYTES)),
    ...(await receive(connect, "receive, JS thread 80 % busy", SMALL_FRAME_BYTES, "often")),
    ...(await receive(connect, "receive, JS thread always busy", SMALL_FRAME_BYTES, "always")),
    ...(await send(connect, "send 64 KiB frames", SMALL_FRAME_BYTES, 1)),
    ...(await send(connect, "send 4 MiB as 1 MiB frames", MAX_PAYLOAD_BYTES, MESSAGE_FRAMES)),
  };
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

function printTable(native: Measured[], twin: Measured[]): void {
  const row = (cells: string[]) =>
    console.log(
      `| ${cells[0]!.padEnd(46)} | ${cells
        .slice(1)
        .map((cell) => cell.padStart(8))
        .join(" | ")} |`,
    );
  row([`median of ${ROUNDS}`, "native", "twin", "n / t"]);
  console.log(
    `| ${"-".repeat(46)} | ${Array(3)
      .fill(`${"-".repeat(7)}:`)
      .join(" | ")} |`,
  );
  for (const metric of Object.keys(native[0]!)) {
    const [n, t] = [native, twin].map((all) => median(all.map((one) => one[metric]!))) as [number, number];
    row([metric, n.toFixed(0), t.toFixed(0), (n / t).toFixed(2)]);
  }
}

const loaded = loadNative();
if (loaded === null) throw new Error("the addon does not load; run scripts/build-native");
const connectNative = nativeConnect(loaded.addon);
const peer = Bun.spawn([process.execPath, join(import.meta.dir, "carrier-peer.ts"), path], {
  stdout: "pipe",
});
try {
  await peer.stdout.getReader().read();
  const native: Measured[] = [];
  const twin: Measured[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    native.push(await measure(connectNative));
    twin.push(await measure(connectTwin));
  }
  printTable(native, twin);
} finally {
  peer.kill();
  rmSync(directory, { recursive: true, force: true });
}
