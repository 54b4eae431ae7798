import { dirname } from "node:path";
import { writeFileAtomically } from "../base/atomic-file.ts";
import type { BaseManifest } from "./base-manifest.ts";
import type { BaseFiles } from "./base-store.ts";
import { type Capture, captureMachine } from "./capture-machine.ts";
import { CheckpointDraft } from "./checkpoint-store.ts";
import { type SealedFile, sealFiles } from "./file-seal.ts";
import { type OpenBase, sealedFilesOf } from "./open-base.ts";
import type { RunningMachine } from "./running-machine.ts";

export interface Checkpoint extends Pick<Capture, "bytesWritten" | "pageBytes" | "pausedMs"> {
  checkpointId: string;
}

/**
 * Makes a base of a machine while it runs; it goes on afterwards. `base` is what it was cloned from.
 * Nothing is left when it rejects.
 */
export async function takeCheckpoint(
  base: OpenBase,
  machine: RunningMachine,
  signal: AbortSignal,
): Promise<Checkpoint> {
  signal.throwIfAborted();
  await using draft = await CheckpointDraft.create(dirname(base.paths.dir), signal);
  const capture = await captureMachine(base, machine, draft.files, signal);
  const manifest = checkpointManifest(draft.id, base, capture.files);
  await writeFileAtomically(draft.files.manifestPath, `${JSON.stringify(manifest, null, 2)}\n`);
  signal.throwIfAborted();
  await sealCapture(base, await draft.publish(), capture);
  const { bytesWritten, pageBytes, pausedMs } = capture;
  return { checkpointId: draft.id, bytesWritten, pageBytes, pausedMs };
}

/** Of a base that was made of a machine cloned from `base`. */
export function checkpointManifest(
  name: string,
  base: Pick<OpenBase, "name" | "manifest">,
  files: BaseManifest["files"],
): BaseManifest {
  return {
    ...base.manifest,
    kind: "checkpoint",
    name,
    created: new Date().toISOString(),
    parent: { name: base.name, state: base.manifest.files.state.sha256 },
    files,
  };
}

/** What was hashed just now need not be hashed again by the first clone of it. */
export async function sealCapture(base: OpenBase, published: BaseFiles, capture: Capture): Promise<void> {
  const sealed: SealedFile[] = [
    { path: published.statePath, ...capture.files.state },
    { path: published.memoryPath, ...capture.files.memory },
  ];
  // The root was checked together with the parent.
  if (capture.hasParent) sealed.push(...sealedFilesOf(base).slice(2));
  await sealFiles(sealed, published.sealPath);
}
