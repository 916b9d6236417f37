/**
 * Reports of silent machines in the `control` table, one item per reporter:
 *
 *   pk `witnesses` sk <name of the reporter>
 *                  role, names: the report as it was last received
 *                  at: when, by our clock, epoch milliseconds; ttl epoch seconds
 *                  s#<name>: since when the reporter has reported this machine without a pause
 *                  w#<name>: when it withdrew its report of this machine
 *
 * One item per reporter and not per accused machine: a report is then one write, whatever it contains, and it replaces
 * the one before without a read. `names` decides what is reported. What is to be removed is known from the item before
 * the write. A second write removes it, only when something was withdrawn.
 *
 * Concurrency: reports of one reporter are ordered by receipt time. A later one is never replaced by an earlier one.
 */
import { below, holds, number } from '../../store/attributes.ts';
import type { Item, ItemKey, ItemUpdater, UpdateWrite } from '../../store/item-store.ts';
import type { SilentMachines } from './silent-machines.ts';

const PARTITION = 'witnesses';
/** A report is valid for this time after it was last received; a withdrawn one is remembered for as long. */
const REPORT_VALID_MS = 30_000;
/** Withdrawn names in one item: it must not grow with each report of a machine that lies. */
const WITHDRAWN_MAX = 64;
/** Nothing reads an older item. Seconds. */
const KEPT_SECONDS = 300;

const RECEIVED_AT_MS = number('at');
const SINCE = 's#';
const WITHDRAWN = 'w#';

const keyOf = (reporter: string): ItemKey => ({ table: 'control', pk: PARTITION, sk: reporter });

export interface ReceivedReport extends SilentMachines {
  readonly reporter: string;
  /** Server receipt time. */
  readonly nowMs: number;
}

/**
 * Stores a report: one write, and a second one if it withdraws something.
 *
 * @param hasTime whether the second write may begin. Without it, the next report does its work.
 */
export async function storeReport(items: ItemUpdater, report: ReceivedReport, hasTime: () => boolean): Promise<void> {
  const { reporter, role, names, nowMs } = report;
  const outcome = await items.write(
    {
      kind: 'update',
      key: keyOf(reporter),
      set: {
        role,
        names: names.join(','),
        [RECEIVED_AT_MS.name]: nowMs,
        ttl: Math.ceil(nowMs / 1_000) + KEPT_SECONDS,
      },
      setIfAbsent: Object.fromEntries(names.map((name) => [SINCE + name, nowMs])),
      when: below(RECEIVED_AT_MS, nowMs),
    },
    { returnPrevious: true },
  );
  if (outcome.kind === 'refused' || outcome.previous === undefined) return;
  const correction = correctionOf(outcome.previous, report);
  if (correction !== undefined && hasTime()) await items.write(correction);
}

/** What the report changes in the item that was stored before it; undefined: nothing. */
function correctionOf(previous: Item, { reporter, names, nowMs }: ReceivedReport): UpdateWrite | undefined {
  // A report after a pause is a new one: the machine may have answered meanwhile.
  const hasPaused = nowMs - (RECEIVED_AT_MS.of(previous) ?? 0) > REPORT_VALID_MS;
  const reported = namesWith(SINCE, previous);
  const withdrawn = reported.filter((name) => !names.includes(name));
  const restarted = hasPaused ? reported.filter((name) => names.includes(name)) : [];
  const forgotten = namesWith(WITHDRAWN, previous)
    .filter((name) => !withdrawn.includes(name))
    .sort((one, other) => Number(previous[WITHDRAWN + other]) - Number(previous[WITHDRAWN + one]))
    .filter(
      (name, index) =>
        index + withdrawn.length >= WITHDRAWN_MAX || nowMs - Number(previous[WITHDRAWN + name]) > REPORT_VALID_MS,
    );
  if (withdrawn.length + restarted.length + forgotten.length === 0) return undefined;
  return {
    kind: 'update',
    key: keyOf(reporter),
    set: Object.fromEntries([
      ...withdrawn.map((name) => [WITHDRAWN + name, nowMs]),
      ...restarted.map((name) => [SINCE + name, nowMs]),
    ]),
    remove: [...withdrawn.map((name) => SINCE + name), ...forgotten.map((name) => WITHDRAWN + name)],
    when: holds(RECEIVED_AT_MS, nowMs),
  };
}

const namesWith = (prefix: string, item: Item): string[] =>
  Object.keys(item).flatMap((attribute) => (attribute.startsWith(prefix) ? [attribute.slice(prefix.length)] : []));
