import type { Policy } from '../shared/fleet/policy.ts';
import type { Fence } from '../shared/store/move-rows.ts';
import { tickGapMaxMs } from '../shared/ticks/tick.ts';
import type { HealthCheck } from './health.ts';
import type { StoreMetrics } from './store/sqlite-store.ts';

export interface Readiness {
  readonly policy: Policy;
  readonly fence: () => Fence | undefined;
  /** Since node-monitor last decided. undefined: it has nothing to decide here. Milliseconds. */
  readonly silentMs: () => number | undefined;
  readonly storeFault: () => string | undefined;
  /** Functions are behind with committed changes. */
  readonly isBehind: () => boolean;
}

/** What a ready process needs, in the order of `/readyz?verbose`. */
export const readinessChecks = (of: Readiness): readonly HealthCheck[] => [
  { name: 'store', fault: of.storeFault },
  {
    name: 'ticks',
    fault() {
      const silentMs = of.silentMs() ?? 0;
      return silentMs > tickGapMaxMs(of.policy)
        ? `node-monitor decided nothing for ${Math.round(silentMs / 1_000)} s`
        : undefined;
    },
  },
  {
    name: 'move',
    fault() {
      const fence = of.fence();
      return fence && `the cluster is being moved to ${fence.to}: writes are refused`;
    },
  },
  { name: 'changes', fault: () => (of.isBehind() ? 'functions are behind with committed changes' : undefined) },
];

export const diskFault = ({ isFailing }: Pick<StoreMetrics, 'isFailing'>): string | undefined =>
  isFailing ? 'the disk is full, read-only or failing: writes are refused' : undefined;
