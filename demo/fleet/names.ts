/**
 * Names of machines and the globs that pick them.
 * A fleet of n machines over zones a, b, c is edge-a-0, edge-b-0, edge-c-0, edge-a-1 …: zones fill evenly.
 */

/** The name and zone of one machine. */
export interface MachineIdentity {
  readonly name: string;
  /** Value of topology.kubernetes.io/zone. */
  readonly zone: string;
  /** Position of the zone in the fleet's list. */
  readonly zoneIndex: number;
  /** Position of the machine in its zone. */
  readonly index: number;
  /** spec.providerID of a machine with a cloud instance. */
  readonly providerId?: string;
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';

/** With more zones than letters, two zones would have the same name. */
export const ZONES_MAX = LETTERS.length;

/** The machines of a fleet in the order of their start. Zones are assigned in turn. */
export function nameMachines(count: number, zones: readonly string[]): MachineIdentity[] {
  if (zones.length === 0 || zones.length > ZONES_MAX) {
    throw new RangeError(`a fleet has 1 to ${ZONES_MAX} zones, not ${zones.length}`);
  }
  return Array.from({ length: count }, (_, position) => {
    const zoneIndex = position % zones.length;
    const index = Math.floor(position / zones.length);
    return { name: `edge-${LETTERS[zoneIndex]}-${index}`, zone: zones[zoneIndex]!, zoneIndex, index };
  });
}

/**
 * A matcher for a shell-like glob over whole names: `*`, `?`, `[abc]`, `[0-4]`, `[!a]`. Any other character matches
 * itself.
 */
export function globMatcher(glob: string): (name: string) => boolean {
  let source = '';
  for (let at = 0; at < glob.length; at += 1) {
    const char = glob[at]!;
    if (char === '*') source += '.*';
    else if (char === '?') source += '.';
    else if (char === '[') {
      const end = glob.indexOf(']', at + 2);
      if (end < 0) {
        source += '\\[';
        continue;
      }
      const inside = glob.slice(at + 1, end).replace(/[\\\]^]/g, '\\$&');
      source += inside.startsWith('!') ? `[^${inside.slice(1)}]` : `[${inside}]`;
      at = end;
    } else source += char.replace(/[.+^${}()|\\\]/-]/g, '\\$&');
  }
  const pattern = new RegExp(`^${source}$`, 's');
  return (name) => pattern.test(name);
}

/** Selects names by globs. Globs without a match are returned in `unmatched`: they are probably typing errors. */
export function selectNames(
  globs: readonly string[],
  names: Iterable<string>,
): { readonly selected: readonly string[]; readonly unmatched: readonly string[] } {
  const all = [...names];
  const selected = new Set<string>();
  const unmatched: string[] = [];
  for (const glob of globs) {
    const matches = all.filter(globMatcher(glob));
    if (matches.length === 0) unmatched.push(glob);
    for (const name of matches) selected.add(name);
  }
  return { selected: [...selected], unmatched };
}
