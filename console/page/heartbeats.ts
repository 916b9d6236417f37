/** When each node last sent a heartbeat, from the Leases. Read while a view shows it. */
import { useMemo } from 'preact/hooks';
import type { KubeLease } from '../../shared/kinds/types.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import { readPages } from './requests.ts';
import { usePoll } from './use-poll.ts';

export const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const PERIOD_MS = 5_000;
const PAGE_NODES = 500;
const PAGES_MAX = 40;

export interface Heartbeats {
  /** By the name of the node. Epoch milliseconds. */
  readonly renewedAtMs: (node: string) => number | undefined;
  /** Why they are not known. */
  readonly failure: string | undefined;
}

/** `nodes`: their number. A page of 500 Leases is read every 5 s, so 5,000 nodes are read once per 50 s. */
export function useHeartbeats(nodes: number): Heartbeats {
  const periodMs = PERIOD_MS * Math.max(1, Math.ceil(nodes / PAGE_NODES));
  const { value, failure } = usePoll('leases', periodMs, read);
  return useMemo(() => ({ renewedAtMs: (node: string) => value?.get(node), failure }), [value, failure]);
}

async function read(): Promise<ReadonlyMap<string, number>> {
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
  return found;
}
