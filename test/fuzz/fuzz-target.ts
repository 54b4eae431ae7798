import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { Rng } from "../support/rng.ts";
import { mutate } from "./mutate.ts";

/** One parser of bytes that somebody else chose. */
export interface FuzzTarget {
  name: string;
  /** Folder of its first inputs, relative to this one */
  corpusPath: string;
  /** Pieces of its language, put in at random */
  words: readonly string[];
  /** How many inputs a test tries: some seconds' worth */
  tries: number;
  /** Throws when the parser does anything but take the bytes or refuse them as it should. `rng` chooses how they come. */
  check(bytes: Uint8Array, rng: Rng): void | Promise<void>;
}

/** A property that did not hold, with all that repeats it. */
export class FuzzFailure extends Error {
  constructor(target: FuzzTarget, seed: number, bytes: Uint8Array, cause: unknown) {
    const shown = Buffer.from(bytes.subarray(0, 400)).toString("latin1");
    super(
      `${target.name}: ${(cause as Error).message}\nrepeat: bun test/fuzz/main.ts ${target.name} --repro ${seed}\n${JSON.stringify(shown)}`,
      { cause },
    );
  }
}

/** Tries the corpus as it is, then `tries` inputs made from it, each from a seed of its own. */
export async function fuzz(target: FuzzTarget, seed: number, tries = target.tries): Promise<void> {
  const corpus = readCorpus(target);
  for (const bytes of corpus) await tryOne(target, seed, bytes);
  for (let at = 0; at < tries; at++) await tryOne(target, seed + at, inputOf(target, corpus, seed + at));
}

/** Tries the one input that a seed makes. */
export async function repeat(target: FuzzTarget, seed: number): Promise<void> {
  await tryOne(target, seed, inputOf(target, readCorpus(target), seed));
}

async function tryOne(target: FuzzTarget, seed: number, bytes: Uint8Array): Promise<void> {
  try {
    await target.check(bytes, new Rng(seed));
  } catch (error) {
    throw new FuzzFailure(target, seed, bytes, error);
  }
}

function inputOf(target: FuzzTarget, corpus: Uint8Array[], seed: number): Uint8Array {
  return mutate(corpus, target.words, new Rng(seed));
}

function readCorpus({ corpusPath }: FuzzTarget): Uint8Array[] {
  const folder = resolve(import.meta.dir, corpusPath);
  return readdirSync(folder)
    .sort()
    .map((name) => new Uint8Array(readFileSync(`${folder}/${name}`)));
}
