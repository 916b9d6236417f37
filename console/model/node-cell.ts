/** What the page keeps of a Node: 5,000 whole objects would exceed the memory of a page. */

import { zoneKeyOf } from '../../shared/fleet/nodes/node-digest.ts';
import { DEFAULT_PROFILE, PROFILE_ANNOTATION } from '../../shared/fleet/nodes/node-profile.ts';
import {
  PLANNED_REASON_ANNOTATION,
  PLANNED_SILENCE_CONDITION,
  plannedUntilMs,
} from '../../shared/fleet/nodes/planned-silence.ts';
import { type NoExecuteTaint, noExecuteTaints } from '../../shared/fleet/nodes/taint.ts';
import { FLAPPING_CONDITION } from '../../shared/fleet/silences/flapping.ts';
import { nodeStatusText } from '../../shared/kinds/nodes/row.ts';
import type { KubeNode, Taint } from '../../shared/kinds/types.ts';
import { rfc3339 } from '../../shared/kubernetes/rfc3339.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import { type Amounts, amountOf } from '../../shared/scheduling/requests.rule.ts';
import { compareTexts } from './rows.ts';

export type NodeState = 'Ready' | 'NotReady' | 'Unknown';

export interface NodeCell {
  readonly name: string;
  readonly zone: string;
  readonly state: NodeState;
  /** As kubectl prints it: also `NotReady` for a silent node. */
  readonly status: string;
  readonly isCordoned: boolean;
  /** It has a NoExecute taint of the node controllers: its pods are evicted. */
  readonly isEvicting: boolean;
  /** When that taint was added. Epoch milliseconds. */
  readonly evictingSinceMs: number | undefined;
  /** The announced silence of a node that is not marked until its end, and that its zone does not count. */
  readonly plannedSilence: PlannedSilence | undefined;
  readonly isFlapping: boolean;
  /** Undefined: `default`. */
  readonly profile: string | undefined;
  /** Last transition of the Ready condition. Epoch milliseconds. */
  readonly readySinceMs: number | undefined;
  readonly createdAtMs: number | undefined;
  readonly noExecute: readonly NoExecuteTaint[];
  /** `key:effect` of each. */
  readonly taints: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** Of the kubelet or the agent. */
  readonly version: string;
  /** What pods may request: cpu in millicores, memory in bytes. */
  readonly allocatable: Pick<Amounts, 'cpu' | 'memory'>;
}

export interface PlannedSilence {
  /** Epoch milliseconds. */
  readonly untilMs: number | undefined;
  /** '' without one. */
  readonly reason: string;
}

/** Source: Kubernetes, "Taints and Tolerations", section "Taint based Evictions". */
const EVICTION_KEYS: ReadonlySet<string> = new Set([
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/unreachable',
  'node.kubernetes.io/out-of-service',
]);

export function cellOf(node: KubeNode): NodeCell {
  const { metadata, spec, status } = node;
  const conditionOf = (wanted: string) => status?.conditions?.find(({ type }) => type === wanted);
  const statusOf = (wanted: string): string | undefined => conditionOf(wanted)?.status;
  const ready = conditionOf('Ready');
  const taint = spec?.taints?.find(isEviction);
  const { annotations } = metadata;
  const profile = annotations?.[PROFILE_ANNOTATION];
  return {
    name: metadata.name ?? '',
    zone: zoneKeyOf(metadata.labels),
    state: ready?.status === 'True' ? 'Ready' : ready?.status === 'False' ? 'NotReady' : 'Unknown',
    status: nodeStatusText(node),
    isCordoned: spec?.unschedulable === true,
    isEvicting: taint !== undefined,
    evictingSinceMs: parseTimeMs(taint?.timeAdded),
    plannedSilence:
      statusOf(PLANNED_SILENCE_CONDITION) === 'True'
        ? { untilMs: plannedUntilMs(annotations), reason: annotations?.[PLANNED_REASON_ANNOTATION] ?? '' }
        : undefined,
    isFlapping: statusOf(FLAPPING_CONDITION) === 'True',
    profile: profile === DEFAULT_PROFILE ? undefined : profile,
    readySinceMs: parseTimeMs(ready?.lastTransitionTime),
    createdAtMs: parseTimeMs(metadata.creationTimestamp),
    noExecute: noExecuteTaints(spec?.taints ?? []),
    taints: (spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`),
    labels: metadata.labels ?? NO_LABELS,
    version: status?.nodeInfo?.kubeletVersion ?? '',
    allocatable: {
      cpu: amountOf('cpu', status?.allocatable?.['cpu'] ?? '0'),
      memory: amountOf('memory', status?.allocatable?.['memory'] ?? '0'),
    },
  };
}

const NO_LABELS: NodeCell['labels'] = Object.freeze({});

const isEviction = ({ key, effect }: Taint): boolean => effect === 'NoExecute' && EVICTION_KEYS.has(key);

/** What a cell shows. A planned silence comes first: controllers neither mark such a node nor count it. */
export type CellLook = 'planned' | 'unknown' | 'not-ready' | 'flapping' | 'cordoned' | 'ready';

export function lookOf({ state, plannedSilence, isFlapping, isCordoned }: NodeCell): CellLook {
  if (plannedSilence !== undefined) return 'planned';
  if (state !== 'Ready') return state === 'NotReady' ? 'not-ready' : 'unknown';
  if (isFlapping) return 'flapping';
  return isCordoned ? 'cordoned' : 'ready';
}

/** By look. A Ready node has none: thousands of letters would hide the few that matter. */
const LETTERS: Readonly<Record<CellLook, string>> = {
  planned: 'P',
  unknown: 'U',
  'not-ready': 'N',
  flapping: 'F',
  cordoned: 'C',
  ready: '',
};

export const letterOf = (cell: NodeCell): string => LETTERS[lookOf(cell)];

/** For screen readers and the line below a strip. */
export function cellText(cell: NodeCell): string {
  const { name, state, plannedSilence, isFlapping, isCordoned, isEvicting, profile } = cell;
  const more = [
    ...(plannedSilence === undefined ? [] : [plannedText(plannedSilence)]),
    ...(isFlapping ? ['flapping'] : []),
    ...(isCordoned ? ['cordoned'] : []),
    ...(isEvicting ? ['tainted: its pods have to leave'] : []),
    ...(profile === undefined ? [] : [`profile ${profile}`]),
  ];
  return [`${name}: ${state}`, ...more].join(', ');
}

function plannedText({ untilMs, reason }: PlannedSilence): string {
  const until = untilMs === undefined ? '' : ` until ${rfc3339(untilMs)}`;
  return `planned silence${until}${reason === '' ? '' : ` (${reason})`}`;
}

/** In the order of their names, numbers by value: edge-a-2 before edge-a-10. */
export const byName = (one: NodeCell, other: NodeCell): number => compareTexts(one.name, other.name);
