/** What is wrong now, what happens next, and why: the first thing that the page states. The worst comes first. */

import { DEFAULT_PROFILE } from '../../shared/fleet/nodes/node-profile.ts';
import type { KubeClusterStatus } from '../../shared/kinds/types.ts';
import { formatAge } from '../../shared/kubernetes/age.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import { countOf, someOf } from './counts.ts';
import { type EvictablePod, evictionPlanOf } from './eviction-plan.ts';
import type { NodeCell } from './node-cell.ts';
import { type DeploymentSummary, podKeyOf } from './pods.ts';
import type { PodSummary } from './replacements.ts';
import { rateText, type ZoneSummary } from './zone-summary.ts';

/** bad: machines or controllers fail. warn: something needs attention. note: something is under way. */
export type Level = 'bad' | 'warn' | 'note';

export interface NextEvent {
  /** Epoch milliseconds; undefined where no time is known. */
  readonly atMs: number | undefined;
  /** Continues a sentence that begins with the time. */
  readonly text: string;
}

export interface Trouble {
  readonly key: string;
  readonly level: Level;
  readonly subject: string;
  /** Address of its details. */
  readonly href: string;
  /** One sentence without its subject. */
  readonly text: string;
  /** When it began, where the text has its age. Epoch milliseconds. */
  readonly sinceMs?: number | undefined;
  readonly next: readonly NextEvent[];
  /** It rests on the decisions about these zones; '' is the whole cluster. */
  readonly zones: readonly string[];
}

export interface SituationInput {
  /** In the order of names. */
  readonly nodes: Iterable<NodeCell>;
  readonly zones: readonly ZoneSummary[];
  readonly status: KubeClusterStatus['status'];
  /** When each node last sent a heartbeat; undefined: not known. Epoch milliseconds. */
  readonly renewedAtMs: (node: string) => number | undefined;
  /** When that was read: a later heartbeat is not known. */
  readonly heartbeatsReadAtMs: number | undefined;
  /** Pods of nodes that are not Ready; undefined: not known. */
  readonly podsOf: (node: string) => readonly EvictablePod[] | undefined;
  readonly oldestPending: PodSummary | undefined;
  readonly deployments: readonly DeploymentSummary[];
  /** End of the last total disruption; undefined: none is recorded. Epoch milliseconds. */
  readonly disruptionEndedMs: number | undefined;
  readonly nowMs: number;
}

const GATE_REASONS: Readonly<Record<string, string>> = {
  missedTicks: 'ticks of node-monitor are missing',
  failingPath: 'our own heartbeats failed, or were sent too rarely',
};

const SHOWN_NAMES = 3;
/** A pod that waits for a moment is no trouble. */
const PENDING_MS = 10_000;
/** A heartbeat is late after this many intervals. */
const LATE_INTERVALS = 1.5;

export function troublesOf(input: SituationInput): readonly Trouble[] {
  const found = [
    ...gateTroubles(input),
    ...disruptionTroubles(input),
    ...[...input.zones].sort(worstFirst).flatMap((zone) => zoneTroubles(zone, input)),
    ...lateTroubles(input),
    ...flappingTroubles(input),
    ...pendingTroubles(input),
    ...rolloutTroubles(input),
    ...plannedTroubles(input),
  ];
  const rank = { bad: 0, warn: 1, note: 2 } as const;
  return found.sort((one, other) => rank[one.level] - rank[other.level]);
}

/**
 * The sentence without any trouble. `lastTroubleMs`: end of the last disruption of a zone, or of the last closed gate;
 * undefined: none in the records; 'unknown': they are not read. `isCut`: there are more nodes, which were not read.
 */
export function quietText(
  nodes: number,
  lastTroubleMs: number | undefined | 'unknown',
  nowMs: number,
  isCut = false,
): string {
  if (nodes === 0) return 'No machine has joined yet.';
  if (isCut) return `The ${nodes} nodes that were read are Ready.`;
  const all = nodes === 1 ? 'The node is Ready.' : `All ${nodes} nodes are Ready.`;
  if (lastTroubleMs === 'unknown') return all;
  return lastTroubleMs === undefined
    ? `${all} No disruption is recorded.`
    : `${all} Last disruption ${formatAge(nowMs - lastTroubleMs)} ago.`;
}

const STATE_RANK: Readonly<Record<string, number>> = { FullDisruption: 0, PartialDisruption: 1 };

/** The worst zone first: by state, then by the share and the number of nodes that are not Ready, then by name. */
export function worstFirst(one: ZoneSummary, other: ZoneSummary): number {
  const rank = ({ state = '' }: ZoneSummary): number => STATE_RANK[state] ?? 2;
  const down = ({ notReady, unknown }: ZoneSummary): number => notReady + unknown;
  const share = (zone: ZoneSummary): number => down(zone) / Math.max(1, zone.cells.length);
  return (
    rank(one) - rank(other) ||
    share(other) - share(one) ||
    down(other) - down(one) ||
    (one.zone < other.zone ? -1 : one.zone > other.zone ? 1 : 0)
  );
}

const zoneName = (zone: string): string => (zone === '' ? 'Nodes without a zone' : `Zone ${zone}`);
const isGateClosed = ({ status }: SituationInput): boolean => status?.gate?.state === 'Closed';

/** The API closes the gate where ticks are missing, whatever the last tick stored. */
function gateTroubles({ status, nowMs }: SituationInput): readonly Trouble[] {
  if (status?.gate?.state !== 'Closed') return [];
  const sinceMs = parseTimeMs(status.gate.since);
  const since = sinceMs === undefined ? '' : ` for ${formatAge(nowMs - sinceMs)}`;
  const opens = status.gate.reasons?.includes('failingPath') ? 'our own heartbeats arrive' : 'the ticks run';
  const reasons = (status.gate.reasons ?? []).map((reason) => GATE_REASONS[reason] ?? reason).join(', ');
  return [
    {
      key: 'gate',
      level: 'bad',
      subject: 'Safety gate',
      href: '#/decisions',
      text: `closed${since}: ${reasons}. No node is newly marked, tainted or evicted.`,
      sinceMs,
      next: [{ atMs: undefined, text: `The gate opens when ${opens} again. Every node then has a full grace period.` }],
      zones: [''],
    },
  ];
}

function disruptionTroubles({ status, nodes }: SituationInput): readonly Trouble[] {
  if (status?.totalDisruption !== true) return [];
  return [
    {
      key: 'disruption',
      level: 'bad',
      subject: 'Total disruption',
      href: '#/nodes',
      text: `no zone has a Ready node (${countOf([...nodes].length, 'node')}). A fault of the controller is more likely than one of all machines: no pod is evicted.`,
      next: [
        {
          atMs: undefined,
          text: 'Evictions stay stopped until one node is Ready. Every node then has a full grace period.',
        },
      ],
      zones: [''],
    },
  ];
}

const isDown = ({ state, plannedSilence }: NodeCell): boolean => state !== 'Ready' && plannedSilence === undefined;

function zoneTroubles(zone: ZoneSummary, input: SituationInput): readonly Trouble[] {
  const down = zone.cells.filter(isDown);
  if (down.length === 0) return [];
  const isDisrupted = zone.state !== undefined && zone.state in STATE_RANK;
  return [
    {
      key: `zone ${zone.zone}`,
      level: isDisrupted || zone.ready === 0 ? 'bad' : 'warn',
      subject: zoneName(zone.zone),
      href: `#/nodes?q=${encodeURIComponent(`zone=${zone.zone}`)}`,
      text: downText(zone, down, downSinceMs(down, input), input.nowMs),
      sinceMs: downSinceMs(down, input),
      next: evictionEvents(zone, down, input),
      zones: [zone.zone, ''],
    },
  ];
}

const downSinceMs = (down: readonly NodeCell[], { renewedAtMs, nowMs }: SituationInput): number =>
  Math.min(
    ...down.map(({ name, state, readySinceMs = nowMs }) =>
      state === 'Unknown' ? (renewedAtMs(name) ?? readySinceMs) : readySinceMs,
    ),
  );

/** "2 of 2 nodes silent for 1m12s (edge-b-0 and edge-b-1)." */
function downText(zone: ZoneSummary, down: readonly NodeCell[], sinceMs: number, nowMs: number): string {
  const silent = down.filter(({ state }) => state === 'Unknown');
  const what =
    silent.length === down.length ? 'silent' : silent.length === 0 ? 'NotReady' : `not Ready (${silent.length} silent)`;
  const names = someOf(
    down.map(({ name }) => name),
    SHOWN_NAMES,
  );
  return `${down.length} of ${countOf(zone.cells.length, 'node')} ${what} for ${formatAge(nowMs - sinceMs)}: ${names}.`;
}

function evictionEvents(zone: ZoneSummary, down: readonly NodeCell[], input: SituationInput): readonly NextEvent[] {
  if (isGateClosed(input)) return [{ atMs: undefined, text: 'No pod is evicted while the safety gate is closed.' }];
  if (input.status?.totalDisruption === true) {
    return [{ atMs: undefined, text: 'No pod is evicted in total disruption.' }];
  }
  const { nowMs, podsOf } = input;
  const { ratePerSecond = 0, nextTokenAtMs } = zone;
  const plan = evictionPlanOf(down, podsOf, { ratePerSecond, nextTokenAtMs, notBeforeMs: notBeforeMs(input), nowMs });
  const events: NextEvent[] = [];
  const arePodsKnown = down.some(({ name }) => podsOf(name) !== undefined);
  if (plan.firstMs !== undefined && plan.lastMs !== undefined) {
    const isMore = down.some(({ name }) => podsOf(name) === undefined);
    const pods = `${isMore ? 'at least ' : ''}${countOf(plan.pods, 'pod')} ${plan.pods === 1 ? 'is' : 'are'} evicted`;
    events.push({
      atMs: plan.firstMs,
      text:
        plan.lastMs - plan.firstMs < 1_000 ? pods : `${pods}, the last ${formatAge(plan.lastMs - plan.firstMs)} later`,
    });
  } else if (arePodsKnown && plan.waiting === 0) {
    const why = plan.staying === 0 ? '' : `: ${countOf(plan.staying, 'pod')} tolerate it for ever`;
    events.push({ atMs: undefined, text: plan.leaving > 0 ? '' : `No pod has to leave${why}.` });
  }
  if (plan.leaving > 0) {
    events.push({
      atMs: undefined,
      text: `${countOf(plan.leaving, 'pod')} being deleted: they end when the machine confirms it, or the Node is deleted.`,
    });
  }
  if (plan.nextTaintMs !== undefined) {
    events.push({
      atMs: plan.nextTaintMs,
      text: `the next of ${countOf(plan.waiting, 'node')} is tainted, ${rateText(ratePerSecond)}`,
    });
  } else if (plan.waiting > 0 && zone.ratePerSecond === 0) {
    events.push({
      atMs: undefined,
      text: `${countOf(plan.waiting, 'node')} not tainted: the rate of the zone is 0 while it is in ${zone.state ?? 'disruption'}.`,
    });
  }
  return events.filter(({ text }) => text !== '');
}

/** After a closed gate or a total disruption, the controller waits a full grace period before it evicts. */
function notBeforeMs({ status, disruptionEndedMs = 0 }: SituationInput): number | undefined {
  const freshMs = Math.max(parseTimeMs(status?.gate?.since) ?? 0, disruptionEndedMs);
  const graceSeconds = graceOf(status, undefined);
  return freshMs === 0 || graceSeconds === undefined ? undefined : freshMs + graceSeconds * 1_000;
}

type Heartbeats = NonNullable<NonNullable<KubeClusterStatus['status']>['heartbeats']>[number];

/** Interval and grace period of a profile; those of `default` for a name that the policy no longer has. */
export function heartbeatsOf(status: KubeClusterStatus['status'], profile: string | undefined): Heartbeats | undefined {
  const all = status?.heartbeats ?? [];
  return (
    all.find((each) => each.profile === (profile ?? DEFAULT_PROFILE)) ??
    all.find((each) => each.profile === DEFAULT_PROFILE)
  );
}

/** Seconds; undefined before it is known. */
export const graceOf = (status: KubeClusterStatus['status'], profile: string | undefined): number | undefined =>
  heartbeatsOf(status, profile)?.graceSeconds;

/** Ready nodes with a late heartbeat: what is about to be marked. */
function lateTroubles(input: SituationInput): readonly Trouble[] {
  const { status, nodes, renewedAtMs, heartbeatsReadAtMs: readAtMs, nowMs } = input;
  if (readAtMs === undefined) return [];
  const late = [...nodes].flatMap((node) => {
    const renewedMs = renewedAtMs(node.name);
    const beats = heartbeatsOf(status, node.profile);
    if (node.state !== 'Ready' || node.plannedSilence !== undefined || renewedMs === undefined || !beats) return [];
    if (readAtMs - renewedMs <= LATE_INTERVALS * beats.intervalSeconds * 1_000) return [];
    return [{ name: node.name, zone: node.zone, renewedMs, markedMs: renewedMs + beats.graceSeconds * 1_000 }];
  });
  if (late.length === 0) return [];
  const firstMs = Math.min(...late.map(({ renewedMs }) => renewedMs));
  const names = someOf(
    late.map(({ name }) => name),
    SHOWN_NAMES,
  );
  return [
    {
      key: 'late',
      level: 'warn',
      subject: 'Late heartbeats',
      href: '#/nodes?sort=-heartbeat',
      text: `${countOf(late.length, 'node')} silent for up to ${formatAge(nowMs - firstMs)}: ${names}.`,
      sinceMs: firstMs,
      next: isGateClosed(input)
        ? [{ atMs: undefined, text: 'No node is marked while the safety gate is closed.' }]
        : [
            {
              atMs: Math.min(...late.map(({ markedMs }) => markedMs)),
              text: 'the first is marked Unknown, unless it sends a heartbeat',
            },
          ],
      zones: [...new Set(late.map(({ zone }) => zone))],
    },
  ];
}

function flappingTroubles({ nodes }: SituationInput): readonly Trouble[] {
  const flapping = [...nodes].filter(({ isFlapping }) => isFlapping);
  if (flapping.length === 0) return [];
  const names = someOf(
    flapping.map(({ name }) => name),
    SHOWN_NAMES,
  );
  return [
    {
      key: 'flapping',
      level: 'warn',
      subject: 'Flapping',
      href: '#/nodes?q=flapping',
      text: `${countOf(flapping.length, 'node')} marked again and again: ${names}. New pods avoid ${flapping.length === 1 ? 'it' : 'them'}.`,
      next: [],
      zones: [],
    },
  ];
}

function pendingTroubles({ oldestPending: pod, nowMs }: SituationInput): readonly Trouble[] {
  if (pod === undefined || nowMs - pod.createdAtMs < PENDING_MS) return [];
  // Why preemption does not help either is a second sentence of the scheduler: the list of pods has it.
  const [why = ''] = pod.whyPending.split(/\.? preemption: /);
  return [
    {
      key: 'pending',
      level: 'warn',
      subject: 'Pending pods',
      href: '#/pods?q=Pending',
      text: `${podKeyOf(pod)} waits for a node for ${formatAge(nowMs - pod.createdAtMs)}: ${why || 'the scheduler has not tried it'}.`,
      sinceMs: pod.createdAtMs,
      next: [],
      zones: [],
    },
  ];
}

function rolloutTroubles({ deployments }: SituationInput): readonly Trouble[] {
  const short = deployments.filter(({ ready, updated, wanted }) => ready < wanted || updated < wanted);
  if (short.length === 0) return [];
  const [first] = short;
  const more =
    short.length === 1
      ? ''
      : ` ${countOf(short.length - 1, 'more Deployment')} below ${short.length === 2 ? 'its' : 'their'} size.`;
  const isRollout = first!.updated < first!.wanted;
  return [
    {
      key: 'deployments',
      level: 'note',
      subject: `Deployment ${first!.namespace}/${first!.name}`,
      href: '#/workloads',
      text: `${first!.ready} of ${first!.wanted} ready${isRollout ? `, ${first!.updated} of ${first!.wanted} updated` : ''}.${more}`,
      next: [],
      zones: [],
    },
  ];
}

function plannedTroubles({ nodes }: SituationInput): readonly Trouble[] {
  const planned = [...nodes].filter(({ plannedSilence }) => plannedSilence !== undefined);
  if (planned.length === 0) return [];
  const ends = planned.flatMap(({ plannedSilence }) => plannedSilence?.untilMs ?? []);
  return [
    {
      key: 'planned',
      level: 'note',
      subject: 'Planned silence',
      href: '#/nodes?q=planned',
      text: `${countOf(planned.length, 'node')}: ${someOf(
        planned.map(({ name }) => name),
        SHOWN_NAMES,
      )}.`,
      next:
        ends.length === 0
          ? []
          : [{ atMs: Math.min(...ends), text: 'the first ends. A node that is silent then is marked' }],
      zones: [],
    },
  ];
}
