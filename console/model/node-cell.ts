/** What the page keeps of a Node: 5,000 whole objects would exceed the memory of a page. */
import { zoneKeyOf } from '../../shared/domain/zones/zone.ts';
import { parseTimeMs } from '../../shared/kube/time.ts';
import type { KubeNode, Taint } from '../../shared/kube/types.ts';

export type NodeState = 'Ready' | 'NotReady' | 'Unknown';

export interface NodeCell {
  readonly name: string;
  readonly zone: string;
  readonly state: NodeState;
  readonly isCordoned: boolean;
  /** It has a NoExecute taint of the node controllers: its pods are evicted. */
  readonly isEvicting: boolean;
  /** When that taint was added. Epoch milliseconds. */
  readonly evictingSinceMs: number | undefined;
}

/** Source: Kubernetes, "Taints and Tolerations", section "Taint based Evictions". */
const EVICTION_KEYS: ReadonlySet<string> = new Set([
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/unreachable',
  'node.kubernetes.io/out-of-service',
]);

export function cellOf({ metadata, spec, status }: KubeNode): NodeCell {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status;
  const taint = spec?.taints?.find(isEviction);
  return {
    name: metadata.name ?? '',
    zone: zoneKeyOf(metadata.labels),
    state: ready === 'True' ? 'Ready' : ready === 'False' ? 'NotReady' : 'Unknown',
    isCordoned: spec?.unschedulable === true,
    isEvicting: taint !== undefined,
    evictingSinceMs: parseTimeMs(taint?.timeAdded),
  };
}

const isEviction = ({ key, effect }: Taint): boolean => effect === 'NoExecute' && EVICTION_KEYS.has(key);

/** The letter on a cell. A Ready node has none: thousands of letters would hide the few that matter. */
export function letterOf({ state, isCordoned }: NodeCell): string {
  if (state === 'Ready') return isCordoned ? 'C' : '';
  return state === 'NotReady' ? 'N' : 'U';
}

/** For screen readers and the line below a strip. */
export function cellText({ name, state, isCordoned, isEvicting }: NodeCell): string {
  const more = [...(isCordoned ? ['cordoned'] : []), ...(isEvicting ? ['pods are evicted'] : [])];
  return [`${name}: ${state}`, ...more].join(', ');
}

const numeric = new Intl.Collator('en', { numeric: true });

/** In the order of their names, numbers by value: edge-a-2 before edge-a-10. */
export const byName = (one: NodeCell, other: NodeCell): number => numeric.compare(one.name, other.name);
