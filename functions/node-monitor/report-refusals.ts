/**
 * Requests that heartbeat and api refused because their identity is over its limit: a metric by kind of identity, and a
 * decision record per identity and minute. A slow or broken read fails only itself.
 */

import { type RefusedIdentity, refusalsOf } from '../../shared/access/refusal-store.ts';
import { refusalDraft } from '../../shared/fleet/mark-decisions.ts';
import { REFUSED_REQUESTS } from '../../shared/fleet/mark-metrics.ts';
import { UNBOUNDED, workThrough } from '../../shared/ticks/bounded-work.ts';
import type { MonitorDependencies } from './dependencies.ts';

const CONCURRENCY_MAX = 16;

export async function reportRefusals(
  dependencies: MonitorDependencies,
  minutes: readonly number[],
  nowMs: number,
): Promise<readonly unknown[]> {
  const { faults } = await workThrough(minutes, { concurrencyMax: 1, budget: UNBOUNDED }, async (minuteMs) => {
    const refused = await refusalsOf(dependencies.items, minuteMs);
    if (refused.length > 0) await report(dependencies, refused, { minuteMs, nowMs });
  });
  return faults;
}

async function report(
  { ledger, log, meter }: MonitorDependencies,
  refused: readonly RefusedIdentity[],
  at: { readonly minuteMs: number; readonly nowMs: number },
): Promise<void> {
  let total = 0;
  const byKind = new Map<string, number>();
  for (const { kind, count } of refused) {
    total += count;
    byKind.set(kind, (byKind.get(kind) ?? 0) + count);
  }
  meter.add(REFUSED_REQUESTS, total, 'Count');
  for (const [kind, count] of byKind) meter.add(REFUSED_REQUESTS, count, 'Count', { reason: kind });
  log.warn('requests of identities over their limit were refused', { requests: total, identities: refused.length });
  const recorded = await workThrough(refused, { concurrencyMax: CONCURRENCY_MAX, budget: UNBOUNDED }, (each) =>
    ledger.recordOnce(refusalDraft(each, at), { atMs: at.minuteMs, key: each.username }),
  );
  if (recorded.faults.length > 0) throw new AggregateError(recorded.faults, 'refused requests could not be recorded');
}
