import type { JailRequest } from "./jail-request.ts";

/** User and group of "nobody" */
const NOBODY = "65534";

export interface BubblewrapOptions {
  /** Of bwrap */
  path: string;
  /** What is inside besides a request's own paths, as bwrap's arguments */
  root: string[];
  /** How the user inside comes about, as bwrap's arguments */
  user: string[];
  /** As in `Jail` */
  gaps: string[];
}

const AS_NOBODY = ["--unshare-user", "--uid", NOBODY, "--gid", NOBODY];
const ALL_OF_USR = "which files QEMU needs could not be told, so it can read all of /usr and its own prefix";
const SAME_USER = "user namespaces are not allowed here, so QEMU keeps this user's id, root's too";

/** From the strongest to the weakest; a minimal root of null is one that could not be told. */
export function bubblewrapChoices(
  path: string,
  minimal: string[] | null,
  broad: string[],
): BubblewrapOptions[] {
  const roots = [...(minimal ? [{ root: minimal, gaps: [] }] : []), { root: broad, gaps: [ALL_OF_USR] }];
  const users = [
    // Closing the door to further user namespaces needs bubblewrap 0.8.
    { user: [...AS_NOBODY, "--disable-userns"], gaps: [] },
    { user: AS_NOBODY, gaps: [] },
    { user: [], gaps: [SAME_USER] },
  ];
  return roots.flatMap(({ root, gaps }) =>
    users.map(({ user, gaps: more }) => ({ path, root, user, gaps: [...gaps, ...more] })),
  );
}

/** No namespace, environment, capability or writable directory is shared beyond what `request` names. */
export function bubblewrapArgv({ path, root, user }: BubblewrapOptions, request: JailRequest): string[] {
  return [
    path,
    ...(request.outlives ? [] : ["--die-with-parent"]),
    ...["--unshare-all", "--as-pid-1", "--clearenv", "--cap-drop", "ALL"],
    ...user,
    ...root,
    ...(request.net ? ["--share-net", "--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"] : []),
    // Without it QEMU complains at every start, and would seem to say so of its real failures.
    ...["--dev-bind", "/dev/null", "/dev/null"],
    ...request.devicePaths.flatMap((device) => ["--dev-bind", device, device]),
    ...request.readOnlyPaths.flatMap((path) => ["--ro-bind", path, path]),
    ...request.writablePaths.flatMap((path) => ["--bind", path, path]),
    ...["--remount-ro", "/", "--chdir", "/", "--"],
  ];
}
