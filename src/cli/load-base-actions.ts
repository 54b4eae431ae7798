import type { BaseActions } from "./base-commands.ts";

/** The VM layer, loaded only by the commands that need it. */
export async function loadBaseActions(): Promise<BaseActions> {
  const [{ buildBase }, { removeBase }, { listBases, verifyBase }] = await Promise.all([
    import("../vm/base-builder.ts"),
    import("../vm/base-store.ts"),
    import("../vm/inspect-bases.ts"),
  ]);
  return { buildBase, listBases, removeBase, verifyBase };
}
