import { EXECUTABLE_PATH } from "./real-vm.ts";

export interface Ended {
  status: number;
  stdout: string;
  stderr: string;
}

/** Runs the executable to its end, without input. It is killed when `limitMs` is over. */
export async function runExecutable(
  args: string[],
  env: Record<string, string>,
  limitMs = 120_000,
): Promise<Ended> {
  const child = Bun.spawn([EXECUTABLE_PATH, ...args], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: limitMs,
  });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { status: await child.exited, stdout, stderr };
}
