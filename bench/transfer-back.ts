import { getFile, putFile } from "../src/guest/transfer-file.ts";
import { cloneBase } from "../src/vm/clone-base.ts";
import type { OpenBase } from "../src/vm/open-base.ts";
import type { RuntimeDirectory } from "../src/vm/runtime-directory.ts";

/** Times, in `ms`, of reading a file of this size out of a clone. */
export async function transferBack(
  base: OpenBase,
  runtime: RuntimeDirectory,
  bytes: number,
  rounds: number,
): Promise<number[]> {
  const signal = AbortSignal.timeout(120_000);
  await using vm = await cloneBase(base, runtime, signal);
  await vm.awaken(signal);
  const content = Buffer.alloc(bytes, "ignition");
  await putFile(vm.agent, "/root/bench.bin", content, signal);
  const times: number[] = [];
  for (let i = 0; i < rounds; i++) {
    const startedAt = performance.now();
    const got = await getFile(
      vm.agent,
      "/root/bench.bin",
      { offset: 0, bytes: null, limitBytes: bytes },
      signal,
    );
    times.push(performance.now() - startedAt);
    if (!content.equals(got.content)) throw new Error("what came back is not what was written");
  }
  return times;
}
