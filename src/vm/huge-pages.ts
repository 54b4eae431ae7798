import { dlopen } from "bun:ffi";

/** From linux/prctl.h */
const PR_SET_THP_DISABLE = 41;

let refused: boolean | null = null;

/**
 * From now on this process and all it starts get memory in pages of the usual size. QEMU asks for huge ones, which
 * round up what a clone takes by some MiB (docs/adr/0013). False where that cannot be asked for. Done once per process.
 */
export function refuseHugePages(): boolean {
  refused ??= process.platform === "linux" && disableHugePages();
  return refused;
}

function disableHugePages(): boolean {
  try {
    const libc = dlopen("libc.so.6", {
      prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
    });
    const result = libc.symbols.prctl(PR_SET_THP_DISABLE, 1n, 0n, 0n, 0n);
    libc.close();
    return result === 0;
  } catch {
    // Another C library: clones are larger then, and no less right.
    return false;
  }
}
