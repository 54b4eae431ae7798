import { type BubblewrapOptions, bubblewrapArgv, bubblewrapChoices } from "./jail-bubblewrap.ts";
import { limitsArgv } from "./jail-limits.ts";
import type { JailRequest } from "./jail-request.ts";
import { broadRoot, minimalRoot } from "./jail-root.ts";
import type { QemuProgram } from "./qemu/find-qemu.ts";
import { seatbeltArgv } from "./seatbelt.ts";

/** How a VMM is confined and bound to the server's life. */
export type JailKind = "bwrap" | "setpriv" | "seatbelt" | "none";

export interface Jail {
  kind: JailKind;
  /** What it lacks here, each the end of the sentence "VMMs are confined less than they could be: …" */
  gaps: string[];
  /** Argv in front of the VMM's own. With bwrap and setpriv the kernel kills the VMM when the server dies, unless it `outlives` it. */
  argv: (request: JailRequest) => string[];
}

const NO_VIEW_OF_ITS_OWN =
  "bubblewrap does not work here, so QEMU sees the files, processes and network this user sees; " +
  "its seccomp filter, no_new_privs and limits remain. Install bubblewrap and allow user namespaces";
const NO_JAIL =
  "neither bubblewrap nor setpriv works here, so QEMU may do what this user may, but for its seccomp filter. " +
  "Install bubblewrap and util-linux";
const OUTLIVES = "QEMU outlives a server that is killed";
const KEEPS_CAPABILITIES = "root's capabilities cannot be dropped here, so QEMU has them";
const NO_LIMITS = "prlimit is missing (package util-linux), so QEMU has the limits of this user";

let known: Promise<Jail> | null = null;

/** The strongest jail that works here, found by starting `qemu` in it. Asked once per process. */
export function findJail(qemu: QemuProgram): Promise<Jail> {
  known ??= tryJails(qemu);
  return known;
}

async function tryJails(qemu: QemuProgram): Promise<Jail> {
  for await (const jail of candidates(qemu)) if (await startsIn(jail, qemu)) return jail;
  return { kind: "none", gaps: [NO_JAIL, OUTLIVES], argv: () => [] };
}

/** From the strongest to the weakest. */
async function* candidates(qemu: QemuProgram): AsyncGenerator<Jail> {
  if (process.platform === "darwin") yield seatbeltJail(qemu);
  if (process.platform !== "linux") return;
  const limits = Bun.which("prlimit");
  const limited = (argv: (request: JailRequest) => string[]) => (request: JailRequest) => [
    ...(limits === null ? [] : limitsArgv(limits, request)),
    ...argv(request),
  ];
  const missing = limits === null ? [NO_LIMITS] : [];
  const bubblewrap = Bun.which("bwrap");
  if (bubblewrap !== null) {
    const options = bubblewrapChoices(bubblewrap, await minimalRoot(qemu), broadRoot(qemu));
    for (const option of options) yield bubblewrapJail(option, missing, limited);
  }
  const setpriv = Bun.which("setpriv");
  if (setpriv === null) return;
  for (const { drop, gaps } of capabilityChoices()) {
    yield {
      kind: "setpriv",
      gaps: [NO_VIEW_OF_ITS_OWN, ...gaps, ...missing],
      argv: limited((request) => [
        setpriv,
        ...(request.outlives ? [] : ["--pdeathsig", "KILL"]),
        ...["--no-new-privs", ...drop, "--"],
      ]),
    };
  }
}

/** Only root has any to lose: without a bounding set the kernel gives it none at the next exec. */
function capabilityChoices(): { drop: string[]; gaps: string[] }[] {
  if (process.getuid?.() !== 0) return [{ drop: [], gaps: [] }];
  return [
    { drop: ["--bounding-set=-all", "--inh-caps=-all"], gaps: [] },
    { drop: [], gaps: [KEEPS_CAPABILITIES] },
  ];
}

function bubblewrapJail(
  options: BubblewrapOptions,
  missing: string[],
  limited: (argv: Jail["argv"]) => Jail["argv"],
): Jail {
  return {
    kind: "bwrap",
    gaps: [...options.gaps, ...missing],
    argv: limited((request) => bubblewrapArgv(options, request)),
  };
}

function seatbeltJail(qemu: QemuProgram): Jail {
  return { kind: "seatbelt", gaps: [OUTLIVES], argv: (request) => seatbeltArgv(qemu, request) };
}

/** Whether QEMU gets as far as its monitor, which takes its libraries, accelerator and firmware. */
async function startsIn(jail: Jail, qemu: QemuProgram): Promise<boolean> {
  const request: JailRequest = {
    readOnlyPaths: [],
    writablePaths: [],
    devicePaths: [],
    net: false,
    memoryBytes: 128 * 1_048_576,
  };
  const machine = process.arch === "arm64" ? "virt" : "microvm";
  const argv = [
    "-M",
    machine,
    "-accel",
    "tcg,tb-size=16",
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
  ];
  const child = Bun.spawn([...jail.argv(request), qemu.path, ...argv, "-S", "-qmp", "stdio"], {
    stdin: new Blob(['{"execute":"qmp_capabilities"}{"execute":"quit"}\n']),
    stdout: "ignore",
    stderr: "ignore",
    env: {},
    timeout: TRIAL_DEADLINE_MS,
    killSignal: "SIGKILL",
  });
  return (await child.exited) === 0;
}

/** Far beyond what a loaded machine needs; then the next weaker jail is tried */
const TRIAL_DEADLINE_MS = 20_000;
