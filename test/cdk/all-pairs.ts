/**
 * Sets that contain one value of each option. Every pair of values of two options occurs in some set. Most faults of
 * combined options come from two of them, and all combinations are too many to synthesise.
 */
export function allPairs<Value>(options: readonly (readonly Value[])[]): readonly (readonly Value[])[] {
  const missing = new Set(pairsOfAll(options));
  const sets: number[][] = [];
  while (missing.size > 0) {
    const set = nextSet(options, missing);
    for (const pair of pairsOf(set)) missing.delete(pair);
    sets.push(set);
  }
  return sets.map((set) => set.map((value, option) => options[option]![value]!));
}

const pairOf = (option: number, value: number, other: number, otherValue: number): string =>
  `${option}=${value} ${other}=${otherValue}`;

function pairsOfAll(options: readonly (readonly unknown[])[]): string[] {
  return options.flatMap((values, option) =>
    options
      .slice(option + 1)
      .flatMap((others, index) =>
        values.flatMap((_, value) =>
          others.map((_, otherValue) => pairOf(option, value, option + 1 + index, otherValue)),
        ),
      ),
  );
}

function pairsOf(set: readonly number[]): string[] {
  return set.flatMap((value, option) =>
    set.slice(option + 1).map((otherValue, index) => pairOf(option, value, option + 1 + index, otherValue)),
  );
}

/** A set with a pair that is missing; its other values are those with which most missing pairs occur. */
function nextSet(options: readonly (readonly unknown[])[], missing: ReadonlySet<string>): number[] {
  const [pair = ''] = missing;
  const fixed = new Map(pair.split(' ').map((part) => part.split('=').map(Number) as [number, number]));
  const set: number[] = [];
  for (const [option, values] of options.entries()) {
    const choices = fixed.has(option) ? [fixed.get(option)!] : [...values.keys()];
    const scores = choices
      .map((value) => [...set, value])
      .map((start) => pairsOf(start).filter((each) => missing.has(each)).length);
    set.push(choices[scores.indexOf(Math.max(...scores))]!);
  }
  return set;
}
