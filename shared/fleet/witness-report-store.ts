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

import type { DeleteWrite, Item, ItemKey, ItemStore, ItemUpdater, UpdateWrite } from '../store/item-store.ts';
import { below, holds, number } from '../store/layout.ts';
import { REPORT_VALID_MS, type SilenceReport, type SilentMachines } from './silent-machines.ts';

const PARTITION = 'witnesses';
/** Withdrawn names in one item: it must not grow with each report of a machine that lies. Characters. */
const WITHDRAWN_LENGTH_MAX = 1_000;
/** Nothing reads an older item. Seconds. */
const KEPT_SECONDS = (2 * REPORT_VALID_MS) / 1_000;

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
  const remembered = namesWith(WITHDRAWN, previous)
    .filter((name) => !withdrawn.includes(name))
    .sort((one, other) => Number(previous[WITHDRAWN + other]) - Number(previous[WITHDRAWN + one]));
  let length = withdrawn.join('').length;
  const forgotten = remembered.filter((name) => {
    length += name.length;
    return length > WITHDRAWN_LENGTH_MAX || nowMs - Number(previous[WITHDRAWN + name]) > REPORT_VALID_MS;
  });
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

/**
 * The stored reports, old ones included. Half a read unit while there are few. One page of 1 MB, 128 read units, is
 * some 5,000 usual items and 250 of machines that lie. Without the others fewer machines are accused.
 */
export async function readReports(items: Pick<ItemStore, 'query'>): Promise<readonly SilenceReport[]> {
  const page = await items.query({ table: 'control', pk: PARTITION, consistent: false });
  return page.items.map(reportOf);
}

function reportOf(item: Item): SilenceReport {
  const reported = new Set(String(item['names']).split(','));
  return {
    reporter: String(item['sk']),
    role: item['role'] === 'hub' ? 'hub' : 'machine',
    receivedAtMs: RECEIVED_AT_MS.of(item) ?? 0,
    sinceMs: new Map(namesWith(SINCE, item).flatMap((name) => (reported.has(name) ? [timeOf(item, SINCE, name)] : []))),
    withdrawnAtMs: new Map(namesWith(WITHDRAWN, item).map((name) => timeOf(item, WITHDRAWN, name))),
  };
}

const timeOf = (item: Item, prefix: string, name: string): [string, number] => [name, Number(item[prefix + name])];

/**
 * Removes a report that nothing reads any more; undefined for any other. The table removes it only days later, and each
 * tick reads it until then.
 */
export const forgetReport = ({ reporter, receivedAtMs }: SilenceReport, nowMs: number): DeleteWrite | undefined =>
  nowMs - receivedAtMs > KEPT_SECONDS * 1_000
    ? { kind: 'delete', key: keyOf(reporter), when: holds(RECEIVED_AT_MS, receivedAtMs) }
    : undefined;
