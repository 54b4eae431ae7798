/** A shorter beginning says too little about what was meant. */
const SHORTEST_STEM = 3;

/** The candidate `name` stands for or is fewest edits away from; null when none is near enough to be a slip. */
export function nearestName(name: string, candidates: readonly string[]): string | null {
  const related = candidates.find(
    (candidate) =>
      candidate.startsWith(`${name}_`) || (candidate.length >= SHORTEST_STEM && name.startsWith(candidate)),
  );
  if (related) return related;
  let best: string | null = null;
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(name, candidate);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Insertions, deletions and replacements that turn one text into the other. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replaced = previous[column - 1]! + (from[row - 1] === to[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, previous[column]! + 1, current[column - 1]! + 1));
    }
    previous = current;
  }
  return previous[to.length]!;
}
