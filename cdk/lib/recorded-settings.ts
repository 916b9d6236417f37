import { nearName } from '../../shared/near-name.ts';
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
    const near = known.includes(prop) ? undefined : nearName(known, prop);
    return near === undefined ? [] : [{ prop, value: read(prop), rule: `is no setting: did you mean ${near}` }];
  });
}
