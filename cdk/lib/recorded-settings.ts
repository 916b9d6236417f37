import type { PropFault } from './cluster-options.ts';
import type { ReadContext } from './context.ts';

/** For one deployment: a teardown, or a step of an upgrade. Without them the next deployment is the safer one. */
const ONE_OFF = ['removalPolicy', 'deletionProtection'];
/** `allow` synthesises unrecorded settings, for a look at the template. */
const SWITCH = 'unrecordedSettings';

/**
 * Settings that the next deployment would forget: passed by `-c`, and not the same in cdk.json. A forgotten
 * `accessEntriesFile` locks everyone out, a forgotten `restoredTablesFile` returns to the tables before the restore.
 *
 * @param names of settings
 * @param recorded `context` of cdk.json
 */
export function unrecordedSettings(
  names: readonly string[],
  read: ReadContext,
  recorded: Readonly<Record<string, unknown>>,
): readonly PropFault[] {
  if (read(SWITCH) === 'allow') return [];
  const textOf = (value: unknown): string => (value === undefined || value === null ? '' : String(value));
  return names
    .filter((name) => !ONE_OFF.includes(name))
    .filter((name) => textOf(read(name)) !== '' && textOf(read(name)) !== textOf(recorded[name]))
    .map((prop) => ({
      prop,
      value: read(prop),
      rule: `is not in "context" of cdk.json: the next deployment would forget it (-c ${SWITCH}=allow only to look)`,
    }));
}

/**
 * Names of context that are almost those of settings. The CDK has no list of names, so such a setting would have no
 * effect, without a word. Other names are left alone: they may be for the CDK, or for constructs of the user.
 *
 * @param names of settings @param present all names of the context
 */
export function misspeltSettings(
  names: readonly string[],
  present: readonly string[],
  read: ReadContext,
): readonly PropFault[] {
  const known = [...names, SWITCH];
  return present.flatMap((prop) => {
    const near = known.includes(prop) ? undefined : known.find((name) => isNear(name, prop));
    return near === undefined ? [] : [{ prop, value: read(prop), rule: `is no setting: did you mean ${near}` }];
  });
}

/** Letters of a name that one letter is a slip in: `tag` may be the user's own, and no misspelt `tags`. */
const LONG_NAME_LETTERS = 8;

/** The same but for case, hyphens and underscores; for a long name also but for one letter, or two that are swapped. */
function isNear(name: string, other: string): boolean {
  const [one, two] = [plain(name), plain(other)];
  if (one.length < LONG_NAME_LETTERS) return one === two;
  const [short, long] = one.length < two.length ? [one, two] : [two, one];
  if (long.length - short.length > 1) return false;
  let same = 0;
  while (same < short.length && short[same] === long[same]) same += 1;
  const isSwapped = short.length === long.length && short.slice(same + 2) === long.slice(same + 2);
  const isTwoTurned = isSwapped && short[same] === long[same + 1] && short[same + 1] === long[same];
  return isTwoTurned || short.slice(short.length === long.length ? same + 1 : same) === long.slice(same + 1);
}

const plain = (name: string): string => name.toLowerCase().replaceAll(/[-_]/g, '');
