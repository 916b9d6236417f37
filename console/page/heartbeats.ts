/** When each node last sent a heartbeat, from the Leases. Read while a view shows it. */
import { useMemo, useRef } from 'preact/hooks';
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
  /** By the name of the node, by the clock of the cluster. Epoch milliseconds. */
  readonly renewedAtMs: (node: string) => number | undefined;
  /** When the Leases were read: a heartbeat since then is not known. Epoch milliseconds. */
  readonly readAtMs: number | undefined;
  /** Why they are not known. */
  readonly failure: string | undefined;
}

/** `nodes`: their number. At most 500 Leases are read per 5 s, so those of 5,000 nodes once per 50 s. */
export function useHeartbeats(nodes: number): Heartbeats {
  const periodMs = Math.max(PERIOD_MS_MIN, PAGE_MS * Math.ceil(nodes / PAGE_NODES));
  const last = useRef<Leases>(undefined);
  const { value, failure } = usePoll('leases', periodMs, async () => {
    last.current = await read(last.current);
    return last.current;
  });
  return useMemo(
    () => ({ renewedAtMs: (node: string) => value?.renewed.get(node)?.atMs, readAtMs: value?.readAtMs, failure }),
    [value, failure],
  );
}

interface Renewed {
  /** As the machine wrote it. */
  readonly time: string;
  readonly atMs: number;
}

interface Leases {
  readonly renewed: ReadonlyMap<string, Renewed>;
  readonly readAtMs: number;
}

/**
 * The controllers do not evaluate the time that a machine writes: its clock may be wrong. A time that differs from the
 * one of the last read was written between these reads.
 */
async function read(last: Leases | undefined): Promise<Leases> {
  let readAtMs = clusterClock.nowMs();
  const found = new Map<string, Renewed>();
  await readPages<KubeLease>(
    LEASES,
    {},
    {
      pagesMax: PAGES_MAX,
      onPage(items) {
        // The first answer has compared the clocks.
        if (found.size === 0) readAtMs = clusterClock.nowMs();
        for (const { metadata, spec } of items) {
          const { renewTime: time = '' } = spec ?? {};
          const writtenMs = parseTimeMs(time);
          if (writtenMs === undefined || metadata.name === undefined) continue;
          const known = last?.renewed.get(metadata.name);
          const sinceMs = known === undefined ? Number.NEGATIVE_INFINITY : last!.readAtMs;
          const atMs = known?.time === time ? known.atMs : Math.max(sinceMs, Math.min(writtenMs, readAtMs));
          found.set(metadata.name, { time, atMs });
        }
      },
    },
  );
  return { renewed: found, readAtMs };
}
