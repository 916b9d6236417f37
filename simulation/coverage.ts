/**
 * Which branches of the rules a simulation has been through: marks that all must be hit, or it proves less than it
 * seems to.
 */
import { timersPartition } from '../shared/fleet/eviction-timer-store.ts';
import { fleetKeyOf } from '../shared/fleet/fleet-store.ts';
import type { TickReport } from './faults/faulty-ticks.ts';
import { type Happened, marksNodes, NOT_READY, UNREACHABLE, type Writer } from './laws/truth.ts';

/** Of pods that a hub moves: only the part `reschedule` reaches them. */
export const MARKS_OF_RESCHEDULE = [
  'S2:moved',
  'S2:moved-on',
  'S2:merged',
  'S2:withdrawn',
  'S2:given-up',
  'S2:switched-off',
  'S3:returned',
] as const;

export const MARKS = [
  'mark:True>Unknown',
  'mark:False>Unknown',
  'taint:unreachable',
  'taint:not-ready',
  'swap:unreachable',
  'swap:not-ready',
  'lift:ready',
  'lift:total-disruption',
  'queue:enqueue',
  'queue:dequeue',
  'zone:Normal>PartialDisruption',
  'zone:Normal>FullDisruption',
  'zone:PartialDisruption>Normal',
  'zone:PartialDisruption>FullDisruption',
  'zone:FullDisruption>Normal',
  'zone:FullDisruption>PartialDisruption',
  'total:enter',
  'total:leave',
  'gate:missedTicks',
  'gate:failingPath',
  'gate:open',
  'hold:gate',
  'hold:totalDisruption',
  'hold:never',
  'hold:rate',
  'decide:in-any-order',
  'tick:ran',
  'tick:lost',
  'tick:stale',
  'tick:alive',
  'tick:restarted',
  'tick:returned',
  'tick:distributed',
  'relay:stored',
  'relay:conflict',
  'relay:expired',
  'relay:failed',
  'relay:used-again',
  'relay:interval-short',
  'part:done',
  'part:expired',
  'part:repeated',
  'cloud:watch',
  'cloud:delete',
  'cloud:shutdown-taint',
  'cloud:lift-shutdown-taint',
  'timer:set',
  'timer:move',
  'timer:cancel',
  'timer:fire',
  'gc:orphaned',
  'gc:terminated',
  'gc:out-of-service',
  'pod:evicted-at-once',
  'pod:bound',
  'stream:parked',
  'stream:settled',
  'write:conflict',
  'watch:event',
  'watch:bookmark',
  'watch:poll',
  'watch:state',
  'watch:pages',
  'watch:resumed',
  'watch:killed',
  'watch:cut',
  'watch:expired',
  'cidr:allocated',
  'cidr:released',
  'cidr:exhausted',
  'cidr:invalid',
  'volume:unmounted',
  'volume:out-of-service',
  'flapping:begin',
  'flapping:end',
  'volume:timeout',
  'volume:nodeGone',
  'lie:steady',
  'lie:drift',
  'lie:jump',
  'clock:ready',
  'clock:tainted',
  'clock:podEnds',
  'poison:ready',
  'poison:tainted',
  'poison:untainted',
  'poison:podEnds',
  'L14:replicaset-create',
  'L14:replicaset-delete',
  'L14:deployment-grow',
  'L14:deployment-shrink',
  'L14:recreate',
  'L14:job-create',
  'L14:job-delete',
  'L14:job-count',
  'L14:daemonset-create',
  'L14:daemonset-replace',
  'L14:statefulset-create',
  'L14:statefulset-replace',
  'L14:statefulset-shrink',
  'L14:statefulset-name-freed',
  'L15:rollout-held',
  'L15:commit-while-closed',
  'L16:collected',
  'L16:released',
  'L16:orphaned',
  'L16:unknown-owner',
  'workloads:replicaset',
  'workloads:job',
  'workloads:statefulset',
  'shares:spent',
  'shares:refused',
  'shares:heartbeat-turn',
  'shares:api-turn',
  'shares:answer',
  'shares:gate-open',
  'shares:recorded',
  'S1:stop',
  'S1:offline-stop',
  'S2:start',
  'S2:start-beside-silent',
  'S2:several',
  ...MARKS_OF_RESCHEDULE,
  'S3:content',
  'S3:equal',
  'S3:event',
  'S3:expired',
  'S3:watch',
  'S3:withdrawn',
  'S3:written',
] as const;
export type Mark = (typeof MARKS)[number];

export interface Coverage {
  readonly hits: Readonly<Record<Mark, number>>;
  /** Counts a mark; other texts are none. */
  hit(mark: string): void;
  onHappened(happened: Happened, by: Writer): void;
  onReport(report: TickReport): void;
  onLog(message: string, fields: Record<string, unknown> | undefined): void;
}

interface Timer {
  readonly podUid: string;
  readonly atMs: number;
}

const isMark = (text: string): text is Mark => (MARKS as readonly string[]).includes(text);
const nameOf: Readonly<Record<string, string>> = { [UNREACHABLE]: 'unreachable', [NOT_READY]: 'not-ready' };

/** `podStands`: whether a pod of this uid is there and not terminating. */
export function createCoverage(podStands: (uid: string) => boolean): Coverage {
  const hits = Object.fromEntries(MARKS.map((mark) => [mark, 0])) as Record<Mark, number>;
  const hit = (text: string): void => {
    if (isMark(text)) hits[text] += 1;
  };

  function onControl({ change }: Extract<Happened, { kind: 'control' }>): void {
    const { key, oldImage, newImage } = change;
    if (key.pk === 'cloud' && oldImage === undefined) hit('cloud:watch');
    if (key.pk === 'parked' && oldImage === undefined) hit('stream:parked');
    if (key.pk === 'parked' && newImage === undefined) hit('stream:settled');
    if (key.pk.startsWith(timersPartition(''))) {
      const before = timersOf(oldImage?.['timers']);
      const after = timersOf(newImage?.['timers']);
      for (const [uid, atMs] of after) {
        if (!before.has(uid)) hit('timer:set');
        else if (before.get(uid) !== atMs) hit('timer:move');
      }
      for (const uid of before.keys()) if (!after.has(uid) && podStands(uid)) hit('timer:cancel');
    }
    const record = fleetKeyOf(key)?.kind;
    if (record === 'queue') hit(newImage === undefined ? 'queue:dequeue' : 'queue:enqueue');
    else if (record === 'zone') hit(`zone:${oldImage?.['state']}>${newImage?.['state']}`);
    else if (record === 'state') {
      const [was, is] = [oldImage, newImage].map((image) => reasonsOf(image?.['gate']));
      for (const reason of is!) if (!was!.includes(reason)) hit(`gate:${reason}`);
      if (was!.length > 0 && is!.length === 0) hit('gate:open');
      if (oldImage?.['total'] !== newImage?.['total']) hit(newImage?.['total'] === 1 ? 'total:enter' : 'total:leave');
    }
  }

  return {
    hits,
    hit,
    onHappened(happened, by) {
      switch (happened.kind) {
        case 'control':
          return onControl(happened);
        case 'ready':
          if (marksNodes(by.name)) hit(`mark:${happened.from}>${happened.to}`);
          return;
        case 'tainted':
          return hit(`${happened.isSwap ? 'swap' : 'taint'}:${nameOf[happened.key]}`);
        case 'untainted':
          if (nameOf[happened.key] === undefined || happened.isSwap) return;
          return hit(happened.node.ready === 'True' ? 'lift:ready' : 'lift:total-disruption');
        case 'shutdownTaint':
          return hit(happened.isThere ? 'cloud:shutdown-taint' : 'cloud:lift-shutdown-taint');
        case 'nodeGone':
          if (by.name === 'cloud-node') hit('cloud:delete');
          return;
        case 'podEnds':
          if (by.name === 'evictor') hit('timer:fire');
          else if (by.name === 'object-stream') hit('pod:evicted-at-once');
          return;
        default:
      }
    },
    onReport({ kind, holds }) {
      hit(`tick:${kind}`);
      for (const hold of holds) hit(`hold:${hold}`);
    },
    onLog(message, fields) {
      if (message === 'pod deleted by garbage collection') hit(`gc:${fields?.['reason']}`);
    },
  };
}

function timersOf(text: unknown): Map<string, number> {
  const timers = typeof text === 'string' ? (JSON.parse(text) as readonly Timer[]) : [];
  return new Map(timers.map(({ podUid, atMs }) => [podUid, atMs]));
}

const reasonsOf = (gate: unknown): readonly string[] =>
  typeof gate === 'string' ? ((JSON.parse(gate) as { readonly reasons: readonly string[] }).reasons ?? []) : [];
