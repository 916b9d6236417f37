/** When each node last sent a heartbeat, from the Leases. Read while a view shows it. */
import { useMemo } from 'preact/hooks';
import type { KubeLease } from '../../shared/kinds/types.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import { clusterClock } from './clock.ts';
import { readPages } from './requests.ts';
import { usePoll } from './use-poll.ts';

export const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const PERIOD_MS_MIN = 10_000;
const PAGE_MS = 5_000;
const PAGE_NODES = 500;
const PAGES_MAX = 40;

export interface Heartbeats {
  /** By the name of the node. Epoch milliseconds. */
  readonly renewedAtMs: (node: string) => number | undefined;
  /** When the Leases were read: a heartbeat since then is not known. Epoch milliseconds. */
  readonly readAtMs: number | undefined;
  /** Why they are not known. */
  readonly failure: string | undefined;
}

/** `nodes`: their number. At most 500 Leases are read per 5 s, so those of 5,000 nodes once per 50 s. */
export function useHeartbeats(nodes: number): Heartbeats {
  const periodMs = Math.max(PERIOD_MS_MIN, PAGE_MS * Math.ceil(nodes / PAGE_NODES));
  const { value, failure } = usePoll('leases', periodMs, read);
  return useMemo(
    () => ({ renewedAtMs: (node: string) => value?.renewed.get(node), readAtMs: value?.readAtMs, failure }),
    [value, failure],
  );
}

interface Leases {
  readonly renewed: ReadonlyMap<string, number>;
  readonly readAtMs: number;
}

async function read(): Promise<Leases> {
  const readAtMs = clusterClock.nowMs();
  const found = new Map<string, number>();
  await readPages<KubeLease>(
    LEASES,
    {},
    {
      pagesMax: PAGES_MAX,
      onPage(items) {
        for (const { metadata, spec } of items) {
          const renewedMs = parseTimeMs(spec?.renewTime);
          if (renewedMs !== undefined && metadata.name !== undefined) found.set(metadata.name, renewedMs);
        }
      },
    },
  );
  return { renewed: found, readAtMs };
}
