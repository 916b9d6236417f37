/**
 * Stores what an accepted heartbeat reports about other machines of its site. The heartbeat is stored already. It is
 * answered as any other, whatever happens here.
 */
import type { Clock } from '../../shared/clock.ts';
import { parseSilentMachines } from '../../shared/fleet/silent-machines.ts';
import { storeReport } from '../../shared/fleet/witness-report-store.ts';
import type { NoteFault } from '../../shared/kubernetes/log-throttle.ts';
import type { ItemUpdater } from '../../shared/store/item-store.ts';

/**
 * No write of a report begins later after the arrival of its heartbeat. The function times out after 7 s, and one
 * write may last 2 s. Milliseconds.
 */
const LAST_START_MS = 4_000;

export interface ReportDependencies {
  readonly items: ItemUpdater;
  readonly clock: Clock;
  readonly noteReportFault: NoteFault;
}

export interface BeatReport {
  /** The node of the renewed Lease. */
  readonly reporter: string;
  /** The annotation. */
  readonly text: string;
  /** When the heartbeat arrived. Epoch milliseconds. */
  readonly nowMs: number;
}

/** Never rejects. */
export async function storeSilentMachines(
  { items, clock, noteReportFault }: ReportDependencies,
  { reporter, text, nowMs }: BeatReport,
): Promise<void> {
  const report = parseSilentMachines(text);
  const hasTime = (): boolean => clock.nowMs() - nowMs <= LAST_START_MS;
  if (report === undefined || !hasTime()) return;
  await storeReport(items, { ...report, reporter, nowMs }, hasTime).catch((fault: unknown) =>
    noteReportFault(fault, { reporter }, clock.nowMs()),
  );
}
