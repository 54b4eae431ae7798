/**
 * Fuzzes by hand, for as long as wanted: bun test/fuzz/main.ts [TARGET...] [--seconds N] [--repro SEED]
 * A failure prints the seed that makes its input; `--repro` tries that input alone.
 */
import { fuzz, repeat } from "./fuzz-target.ts";
import { TARGETS } from "./targets.ts";

const ROUND_TRIES = 500;

interface Request {
  names: string[];
  seconds: number;
  repro: number | null;
}

function parse(args: string[]): Request {
  const request: Request = { names: [], seconds: 20, repro: null };
  for (let at = 0; at < args.length; at++) {
    if (args[at] === "--seconds") request.seconds = Number(args[++at]);
    else if (args[at] === "--repro") request.repro = Number(args[++at]);
    else request.names.push(args[at]!);
  }
  return request;
}

const { names, seconds, repro } = parse(process.argv.slice(2));
const chosen = TARGETS.filter(({ name }) => names.length === 0 || names.includes(name));
if (chosen.length === 0) throw new Error(`no target ${names}; there are ${TARGETS.map(({ name }) => name)}`);
for (const target of chosen) {
  if (repro !== null) {
    await repeat(target, repro);
    continue;
  }
  const until = performance.now() + (seconds * 1000) / chosen.length;
  let seed = Date.now() % 1_000_000_000;
  let tries = 0;
  for (; performance.now() < until; seed += ROUND_TRIES, tries += ROUND_TRIES)
    await fuzz(target, seed, ROUND_TRIES);
  console.log(`${target.name}: ${tries} inputs`);
}
