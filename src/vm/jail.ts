import { dirname } from "node:path";

/** How a VMM is confined and bound to the server's life. */
export type JailKind = "bwrap" | "setpriv" | "none";

export interface JailRequest {
  /** The VMM's prefix, such as "/usr" */
  prefix: string;
  /** Paths the VMM may read */
  readOnlyPaths: string[];
  /** Directories the VMM may write */
  writablePaths: string[];
  /** Devices it needs, such as "/dev/kvm" */
  devicePaths: string[];
  /** Reach the host's network: only for a machine with a network card */
  net: boolean;
}

/** Argv in front of the VMM's own. In every kind but "none" the kernel kills the VMM when the server dies. */
export function jailArgv(kind: JailKind, request: JailRequest): string[] {
  switch (kind) {
    case "bwrap":
      return bubblewrapArgv(request);
    case "setpriv":
      return ["setpriv", "--pdeathsig", "KILL", "--no-new-privs", "--"];
    case "none":
      return [];
  }
}

function bubblewrapArgv(request: JailRequest): string[] {
  const outsideUsr = request.prefix !== "/usr" && !request.prefix.startsWith("/usr/");
  return [
    ...["bwrap", "--die-with-parent", "--unshare-all", "--as-pid-1", "--clearenv", "--cap-drop", "ALL"],
    ...(request.net ? ["--share-net"] : []),
    ...["--ro-bind", "/usr", "/usr"],
    ...["lib", "lib64", "bin", "sbin"].flatMap((name) => ["--symlink", `usr/${name}`, `/${name}`]),
    ...["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"],
    ...["--ro-bind-try", "/etc/alternatives", "/etc/alternatives"],
    ...(request.net ? ["--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"] : []),
    ...["--proc", "/proc", "--dev", "/dev"],
    ...(outsideUsr ? readOnly(dirname(request.prefix)) : []),
    ...request.devicePaths.flatMap((path) => ["--dev-bind", path, path]),
    ...request.readOnlyPaths.flatMap(readOnly),
    ...request.writablePaths.flatMap((path) => ["--bind", path, path]),
    ...["--chdir", "/", "--"],
  ];
}

function readOnly(path: string): string[] {
  return ["--ro-bind", path, path];
}

let known: Promise<JailKind> | null = null;

/** The strongest jail that works here, found by trying it. Asked once per process. */
export function findJail(): Promise<JailKind> {
  known ??= tryJails();
  return known;
}

async function tryJails(): Promise<JailKind> {
  if (process.platform !== "linux") return "none";
  const request: JailRequest = {
    prefix: "/usr",
    readOnlyPaths: [],
    writablePaths: [],
    devicePaths: [],
    net: false,
  };
  for (const kind of ["bwrap", "setpriv"] as const) {
    const argv = [...jailArgv(kind, request), "true"];
    if (Bun.which(argv[0]!) === null) continue;
    const child = Bun.spawn(argv, { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
    if ((await child.exited) === 0) return kind;
  }
  return "none";
}
