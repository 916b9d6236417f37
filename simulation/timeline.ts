/** What happened, a line a change: for people, with neighbours that did the same put together, or as JSON lines. */

import type { FleetRecords } from '../shared/fleet/fleet-store.ts';
import { zoneKeyOf } from '../shared/fleet/nodes/node-digest.ts';
import type { KubeNode, KubeObject } from '../shared/kinds/types.ts';
import { parseTimeMs } from '../shared/kubernetes/time.ts';
import { describeTaint } from './check-expectation.ts';
import { type ObjectChange, podKey, type ViewChanges } from './cluster-view.ts';
import { formatDuration } from './duration.ts';
import { readyOfPod } from './machine-pods.ts';
import type { Actor } from './tally.ts';

export interface TimelineEntry {
  /** From the start. */
  readonly atMs: number;
  readonly kind: 'step' | 'node' | 'pod' | 'set' | 'zone' | 'fleet' | 'expect' | 'failed';
  /** The subject; '' for the fleet as a whole. */
  readonly name: string;
  readonly text: string;
}

type Line = Omit<TimelineEntry, 'atMs'>;

const OWN_PREFIX = 'node.kubernetes.io/';
const shortTaint = (taint: { key: string; value?: string; effect: string }): string =>
  describeTaint({ ...taint, key: taint.key.startsWith(OWN_PREFIX) ? taint.key.slice(OWN_PREFIX.length) : taint.key });

function nodeLines({ before, after }: ObjectChange<KubeNode>, actor: Actor): Line[] {
  const name = (after ?? before)?.metadata.name ?? '';
  const lines: Line[] = [];
  const say = (text: string): void => {
    lines.push({ kind: 'node', name, text });
  };
  if (after === undefined) {
    say(actor === 'controllers' ? 'removed by the controllers' : 'deleted');
    return lines;
  }
  const isNew = before === undefined || before.metadata.uid !== after.metadata.uid;
  const zone = zoneKeyOf(after.metadata.labels);
  if (isNew) say(zone === '' ? 'registered' : `registered in ${zone}`);
  const old = isNew ? undefined : before;
  for (const condition of after.status?.conditions ?? []) {
    const was = old?.status?.conditions?.find(({ type }) => type === condition.type)?.status;
    const isQuiet = isNew && condition.status === (condition.type === 'Ready' ? 'True' : 'False');
    if (was === condition.status || isQuiet) continue;
    // The pressure conditions follow Ready when a node is marked and when it recovers.
    if (condition.type !== 'Ready' && (condition.status === 'Unknown' || was === 'Unknown')) continue;
    say(`${condition.type} ${was === undefined ? '' : `${was} → `}${condition.status} (${condition.reason ?? ''})`);
  }
  const has = (node: KubeNode | undefined): string[] => (node?.spec?.taints ?? []).map(shortTaint);
  const [had, carries] = [has(old), has(after)];
  const changes = [
    ...carries.filter((taint) => !had.includes(taint)).map((taint) => `+${taint}`),
    ...had.filter((taint) => !carries.includes(taint)).map((taint) => `-${taint}`),
  ];
  if (changes.length > 0) say(`taints ${changes.join(' ')}`);
  if ((old?.spec?.unschedulable === true) !== (after.spec?.unschedulable === true)) {
    say(after.spec?.unschedulable === true ? 'cordoned' : 'uncordoned');
  }
  const cidrs = (after.spec?.podCIDRs ?? []).join(', ');
  if (cidrs !== (old?.spec?.podCIDRs ?? []).join(', ')) say(`podCIDRs ${cidrs}`);
  return lines;
}

function podLines({ before, after }: ObjectChange, nowMs: number): Line[] {
  const pod = (after ?? before) as KubeObject;
  const say = (text: string): Line[] => [{ kind: 'pod', name: podKey(pod), text }];
  if (after === undefined) return say('gone');
  if (before === undefined) return say(`created${bound(after)}`);
  const endsAtMs = parseTimeMs(after.metadata.deletionTimestamp);
  if (endsAtMs !== undefined && after.metadata.deletionTimestamp !== before.metadata.deletionTimestamp) {
    return say(`being deleted, ${formatDuration(Math.max(0, endsAtMs - nowMs))} to end`);
  }
  if (bound(before) === '' && bound(after) !== '') {
    return say(`bound to ${String(after.spec?.['nodeName'])}`);
  }
  const [phase, was] = [after.status?.['phase'], before.status?.['phase']];
  if (phase !== was) return say(`${String(phase)}`);
  if (readyOfPod(after) !== readyOfPod(before)) return say(`Ready ${readyOfPod(before)} → ${readyOfPod(after)}`);
  return [];
}

const numberIn = (record: KubeObject['status'], names: readonly string[]): number =>
  Number(names.map((name) => record?.[name]).find((value) => value !== undefined) ?? 0);

/** Sizes of ReplicaSets; how many pods of other workloads are Ready and of the present template. */
function workloadLines({ before, after }: ObjectChange): Line[] {
  const object = (after ?? before) as KubeObject;
  const say = (text: string): Line[] => [{ kind: 'set', name: `${object.kind} ${podKey(object)}`, text }];
  if (after === undefined) return say('deleted');
  if (object.kind === 'ReplicaSet') {
    const [was, is] = [before, after].map((set) => Number(set?.spec?.['replicas'] ?? 0));
    return was === is ? [] : say(`size ${was} → ${is}`);
  }
  const [was, is] = [before, after].map((each) => {
    const ready = numberIn(each?.status, ['readyReplicas', 'numberReady', 'ready']);
    const updated = numberIn(each?.status, ['updatedReplicas', 'updatedNumberScheduled', 'succeeded']);
    return `${ready} ready, ${updated} ${object.kind === 'Job' ? 'succeeded' : 'updated'}`;
  });
  return was === is && before !== undefined ? [] : say(is ?? '');
}

/** ` on NODE`; '' without a node. */
const bound = (pod: KubeObject): string => {
  const nodeName = pod.spec?.['nodeName'];
  return typeof nodeName === 'string' && nodeName !== '' ? ` on ${nodeName}` : '';
};

function zoneLines(before: FleetRecords | undefined, after: FleetRecords): Line[] {
  const lines: Line[] = [];
  const queuedIn = (records: FleetRecords | undefined, zone: string): number =>
    records?.queue.filter((item) => item.zone === zone).length ?? 0;
  for (const record of after.zones) {
    const old = before?.zones.find(({ zone }) => zone === record.zone);
    const parts: string[] = [];
    if (old?.state !== record.state) {
      parts.push(
        old?.state === undefined
          ? `${record.state ?? 'no node counts'}`
          : `${old.state} → ${record.state ?? 'no node counts'}`,
      );
    }
    const rate = record.limiter.ratePerSecond;
    if (old?.limiter.ratePerSecond !== rate) parts.push(rate === 0 ? 'evictions stop' : `evicts ${rate}/s`);
    const queued = queuedIn(after, record.zone);
    if (queuedIn(before, record.zone) !== queued) parts.push(`${queued} queued`);
    if (parts.length > 0)
      lines.push({ kind: 'zone', name: record.zone === '' ? '""' : record.zone, text: parts.join(', ') });
  }
  return lines;
}

function fleetLines(before: FleetRecords | undefined, after: FleetRecords): Line[] {
  const say = (text: string): Line => ({ kind: 'fleet', name: '', text });
  const lines: Line[] = [];
  const [was, is] = [before?.state.gate.reasons.join(', ') ?? '', after.state.gate.reasons.join(', ')];
  // The very first tick has no tick before it: that is no news.
  if (was !== is && before?.state.slot !== undefined)
    lines.push(say(is === '' ? 'the gate opens' : `the gate holds: ${is}`));
  if ((before?.state.disruption.total ?? false) !== after.state.disruption.total) {
    lines.push(say(after.state.disruption.total ? 'every zone is dark: total disruption' : 'total disruption is over'));
  }
  return lines;
}

/** Lines of what was written since the last call. */
export function changeLines(
  changes: ViewChanges,
  of: {
    readonly actor: Actor;
    readonly nowMs: number;
    readonly before: FleetRecords | undefined;
    readonly after: FleetRecords;
  },
): Line[] {
  return [
    ...changes.nodes.flatMap((change) => nodeLines(change, of.actor)),
    ...changes.pods.flatMap((change) => podLines(change, of.nowMs)),
    ...changes.workloads.flatMap(workloadLines),
    ...fleetLines(of.before, of.after),
    ...zoneLines(of.before, of.after),
  ];
}

/** a-2 before a-10. */
const byName = new Intl.Collator('en', { numeric: true }).compare;

const KIND_WIDTH = 6;
const TIME_WIDTH = 9;
const NAME_WIDTH = 22;
/** From so many neighbours on that did the same, the first and the last stand for all. */
const FOLD_FROM = 4;

function joinNames(names: readonly string[]): string {
  if (names.length < FOLD_FROM) return names.join(', ');
  return `${names[0]} … ${names.at(-1)} (${names.length})`;
}

/** Aligned lines; those of one moment that say the same of several are one. */
export function printable(entries: readonly TimelineEntry[]): string[] {
  const lines: { atMs: number; kind: string; text: string; names: string[] }[] = [];
  for (const { atMs, kind, name, text } of entries) {
    const same = lines.find((line) => line.atMs === atMs && line.kind === kind && line.text === text);
    if (same === undefined) lines.push({ atMs, kind, text, names: [name] });
    else if (!same.names.includes(name)) same.names.push(name);
  }
  return lines.map(({ atMs, kind, text, names }) => {
    const who = joinNames(names.filter((name) => name !== '').sort(byName));
    const time = formatDuration(atMs).padStart(TIME_WIDTH);
    return `${time}  ${kind.padEnd(KIND_WIDTH)}  ${who === '' ? text : `${who.padEnd(NAME_WIDTH)}  ${text}`}`;
  });
}
