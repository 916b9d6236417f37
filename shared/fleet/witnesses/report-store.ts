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
import { defined } from '../../defined.ts';
import { below, holds, number } from '../../store/attributes.ts';
import type { DeleteWrite, Item, ItemKey, ItemStore, ItemUpdater, UpdateWrite } from '../../store/item-store.ts';
import { REPORT_VALID_MS, type SilenceReport, type SilentMachines } from './silent-machines.ts';

const PARTITION = 'witnesses';
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

/** Pages of one read, of 1 MB: some thousand reporters. Without the others fewer machines are accused. */
const PAGES_MAX = 4;

/** The stored reports, old ones included. Half a read unit while there are few. */
export async function readReports(items: Pick<ItemStore, 'query'>): Promise<readonly SilenceReport[]> {
  const reports: SilenceReport[] = [];
  let after: string | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await items.query({ table: 'control', pk: PARTITION, consistent: false, ...defined({ after }) });
    for (const item of page.items) reports.push(reportOf(item));
    after = page.next;
    if (after === undefined) break;
  }
  return reports;
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
