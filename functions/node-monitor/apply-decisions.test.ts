import { describe, expect, it } from 'vitest';
import { decisionStore } from '../../shared/decisions/decision-store.ts';
import type { SentParts } from '../../shared/fleet/fleet-store.ts';
import { gateOf, UNTRIED_GATE } from '../../shared/fleet/gate.ts';
import type { MonitorDecision } from '../../shared/fleet/marks.rule.ts';
import type { NodeHealth } from '../../shared/fleet/nodes/health.ts';
import { markUnknown } from '../../shared/fleet/nodes/health-store.ts';
import { PLANNED_UNTIL_ANNOTATION } from '../../shared/fleet/nodes/planned-silence.ts';
import { NO_DISRUPTION } from '../../shared/fleet/zone-state.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import { rfc3339 } from '../../shared/kubernetes/rfc3339.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { UNBOUNDED, type WorkBudget } from '../../shared/ticks/bounded-work.ts';
import { START_MS, settledFleet } from '../../test/support/controlled-fleet.ts';
import { monitorParts } from '../../test/support/monitor-parts.ts';
import { applyDecisions, endKeptPromises } from './apply-decisions.ts';
import type { Decided } from './decide-tick.ts';
import type { MonitorPorts } from './dependencies.ts';

const NOW_MS = START_MS + 60_000;
const NO_TIME: WorkBudget = { hasTime: () => false };
const DOWN = new StoreFault('throttled', 'down', { retryable: true });

/** Three nodes of one zone that were last seen 60 s ago, and what a tick over them applies. */
async function applying({
  ports = {},
  between = (items) => items,
}: {
  readonly ports?: MonitorPorts;
  readonly between?: (items: ItemStore) => ItemStore;
} = {}) {
  const { fleet, names } = await settledFleet({ a: 3 });
  fleet.at(60);
  const { dependencies, emitted, warnings } = monitorParts(ports, { nowMs: NOW_MS, items: between(fleet.tables) });
  const nodes = (await Promise.all(names.map((name) => fleet.health(name)))).map((health) => health!);
  const of = (name: string) => {
    const { nodeName, uid, zone } = nodes.find((each) => each.nodeName === name)!;
    return { nodeName, uid, zone };
  };
  const mark = (name: string): MonitorDecision => ({
    kind: 'markUnknown',
    ...of(name),
    from: 'True',
    silentSeconds: 60,
    graceSeconds: 40,
    lastSpokeAtMs: START_MS,
    freshSinceMs: 0,
    markPods: true,
    event: undefined,
    flaps: undefined,
    accusation: undefined,
  });
  const apply = (
    decisions: readonly MonitorDecision[],
    at: { readonly budget?: WorkBudget; readonly sentBefore?: SentParts; readonly seen?: readonly NodeHealth[] } = {},
  ) =>
    applyDecisions(dependencies, decisions, at.seen ?? nodes, {
      nowMs: NOW_MS,
      budget: at.budget ?? UNBOUNDED,
      tick: { slot: 12, fence: 34 },
      zones: new Map([['a', { zone: 'a', size: 3, healthPercent: 0, unhealthy: 3 }]]),
      totalDisruption: false,
      sentBefore: at.sentBefore,
    });
  const records = async () =>
    (await decisionStore(fleet.tables).list({ nowMs: NOW_MS, limit: 100 })).decisions
      .map(({ record }) => record)
      .filter(({ atMs }) => atMs === NOW_MS);
  const podReady = async (name: string) =>
    ((await fleet.pod(name)) as KubePod).status?.conditions?.find(({ type }) => type === 'Ready')?.status;
  return { fleet, dependencies, emitted, warnings, nodes, of, mark, apply, records, podReady };
}
const createZone: MonitorDecision = {
  kind: 'createZone',
  zone: 'b',
  state: 'Normal',
  size: 3,
  notReady: 0,
  ratePerSecond: 0.1,
};

describe('marks of a tick', () => {
  it('are counted, with their pods, and recorded with the tick', async () => {
    const { fleet, mark, apply, emitted, records, podReady, warnings } = await applying();
    await fleet.addPod('p', 'a-0');
    expect(await apply([mark('a-0'), mark('a-1')])).toMatchObject({
      marked: 2,
      left: 0,
      faults: [],
      sent: 0,
      awaited: 0,
    });
    expect([await fleet.ready('a-0'), await fleet.ready('a-1'), await fleet.ready('a-2')]).toEqual([
      'Unknown',
      'Unknown',
      'True',
    ]);
    expect(await podReady('p')).toBe('False');
    expect((await fleet.health('a-0'))?.podsToMark).toBe(false);
    expect(emitted.map(({ name, value }) => [name, value])).toEqual([
      ['marked_nodes', 2],
      ['detection_seconds', 60],
    ]);
    expect(await records()).toEqual([
      expect.objectContaining({ slot: 12, fence: 34 }),
      expect.objectContaining({ slot: 12 }),
    ]);
    expect(warnings).toEqual([]);
  });

  it('that found no time are left, with what follows from them', async () => {
    const { fleet, mark, of, apply, warnings } = await applying();
    const enqueue: MonitorDecision = {
      kind: 'enqueue',
      ...of('a-0'),
      taint: 'unreachable',
      addedAtMs: 1,
      silentSeconds: 60,
    };
    const applied = await apply([mark('a-0'), createZone, enqueue, { ...enqueue, ...of('a-1') }], { budget: NO_TIME });
    // The enqueued a-1 is left too. A zone is created at any time.
    expect(applied).toMatchObject({ marked: 0, left: 2 });
    const { zones, queue } = await fleet.records();
    expect([zones.map(({ zone }) => zone), queue]).toEqual([['b'], []]);
    expect(warnings).toMatchObject([{ fields: { left: 2 } }]);
  });

  it('are followed by their decisions in the same tick, and those of a node that was not marked are not', async () => {
    const { fleet, mark, of, apply } = await applying();
    await fleet.beat('a-0');
    const enqueue = (name: string): MonitorDecision => ({
      kind: 'enqueue',
      ...of(name),
      taint: 'unreachable',
      addedAtMs: 1,
      silentSeconds: 60,
    });
    const applied = await apply([mark('a-0'), mark('a-1'), enqueue('a-0'), enqueue('a-1'), enqueue('a-2')]);
    expect(applied).toMatchObject({ marked: 1, left: 0 });
    expect((await fleet.records()).queue.map(({ nodeName }) => nodeName)).toEqual(['a-1', 'a-2']);
  });

  it('count a node as left while its pods are not marked', async () => {
    const { fleet, mark, apply } = await applying({
      between: (items) => ({
        ...items,
        transact: (writes) =>
          writes.some(({ key }) => key.pk.startsWith('o#pods#')) ? Promise.reject(DOWN) : items.transact(writes),
      }),
    });
    await fleet.addPod('p', 'a-0');
    const { marked, left, faults } = await apply([mark('a-0'), mark('a-1')]);
    expect([marked, left, faults.length]).toEqual([2, 1, 1]);
    expect((await fleet.health('a-0'))?.podsToMark).toBe(true);
  });

  it('of a mass failure are sent, and awaited by the next ticks', async () => {
    const sent: string[] = [];
    const partQueue = {
      send: async (bodies: readonly string[]) => {
        sent.push(...bodies);
        return [];
      },
      postpone: async () => {},
    };
    const { dependencies, mark, apply } = await applying({ ports: { partQueue } });
    (dependencies.policy as { nodesMarkedPerTickMax: number }).nodesMarkedPerTickMax = 1;
    const all = ['a-0', 'a-1', 'a-2'].map(mark);
    const first = await apply(all);
    expect(first).toMatchObject({ marked: 0, sent: 3, awaited: 0, sentAfter: { fullAtMs: NOW_MS, lastAtMs: NOW_MS } });
    const next = await apply(all, { sentBefore: first.sentAfter! });
    expect([next.sent, next.awaited, next.sentAfter]).toEqual([0, 3, undefined]);
  });
});

describe('decisions about single nodes', () => {
  it('that fail are faults, and the others are applied', async () => {
    const { fleet, of, apply } = await applying({
      between: (items) => ({
        ...items,
        write: (write, options) =>
          write.key.sk === 'queue#a#a-0' ? Promise.reject(DOWN) : items.write(write, options),
      }),
    });
    const enqueue = (name: string): MonitorDecision => ({
      kind: 'enqueue',
      ...of(name),
      taint: 'unreachable',
      addedAtMs: 7,
      silentSeconds: 60,
    });
    const { faults, left } = await apply([enqueue('a-0'), enqueue('a-1')]);
    expect([faults, left]).toEqual([[DOWN], 0]);
    expect((await fleet.records()).queue).toEqual([{ ...of('a-1'), addedAtMs: 7 }]);
  });

  it('remove a node from its queue', async () => {
    const { fleet, of, apply } = await applying();
    await apply([{ kind: 'enqueue', ...of('a-0'), taint: 'unreachable', addedAtMs: 7, silentSeconds: 60 }]);
    await apply([{ kind: 'dequeue', ...of('a-0'), reason: 'ready', addedAtMs: 7 }]);
    expect((await fleet.records()).queue).toEqual([]);
  });

  it('remove and replace NoExecute taints, with the tick in their records', async () => {
    const { fleet, of, apply, records } = await applying();
    const tainted = (name: string, ready: 'True' | 'False', key: string) =>
      fleet.changeNode(name, (node) => ({
        ...node,
        spec: { ...node.spec, taints: [{ key: `node.kubernetes.io/${key}`, effect: 'NoExecute' }] },
        status: { ...node.status, conditions: [{ type: 'Ready', status: ready }] },
      }));
    await tainted('a-0', 'True', 'not-ready');
    await tainted('a-1', 'False', 'unreachable');
    await apply([
      { kind: 'lift', ...of('a-0'), reason: 'ready', taints: ['notReady'] },
      { kind: 'swap', ...of('a-1'), from: 'unreachable', to: 'notReady', ready: 'False' },
    ]);
    expect(await fleet.taints('a-0')).toEqual([]);
    expect(await fleet.taints('a-1')).toEqual(['not-ready:NoExecute']);
    expect((await records()).map(({ slot, fence }) => [slot, fence])).toEqual([
      [12, 34],
      [12, 34],
    ]);
  });

  it('mark pods that an earlier tick did not, unless node-marker may still do it', async () => {
    const { fleet, of, mark, nodes, apply, podReady } = await applying();
    await apply([mark('a-0')]);
    await fleet.addPod('p', 'a-0');
    const decision: MonitorDecision = { kind: 'markPods', ...of('a-0'), ready: 'Unknown' };
    const seen = nodes.map((health) => ({ ...health, markedAtMs: NOW_MS - 10_000 }));
    const sentBefore = { fullAtMs: NOW_MS - 10_000, lastAtMs: NOW_MS - 10_000 };
    expect(await apply([decision, { ...decision, ...of('a-1') }], { sentBefore, seen })).toMatchObject({
      awaited: 2,
      left: 0,
    });
    expect(await podReady('p')).toBe('True');
    expect(await apply([decision], { sentBefore: { fullAtMs: 0, lastAtMs: 0 }, seen })).toMatchObject({ awaited: 0 });
    expect(await podReady('p')).toBe('False');
  });

  it('forget pods to mark of a node that is Ready again', async () => {
    const { fleet, of, nodes, apply } = await applying();
    const noExecute = { notReady: false, unreachable: false };
    await fleet.tables.write(markUnknown(nodes[0]!, { nowMs: NOW_MS, noExecute, podsToMark: true, flaps: undefined }));
    expect((await fleet.health('a-0'))?.podsToMark).toBe(true);
    await apply([{ kind: 'dropPodsToMark', ...of('a-0') }]);
    expect((await fleet.health('a-0'))?.podsToMark).toBe(false);
  });

  it('end promises at their time', async () => {
    const { fleet, of, apply } = await applying();
    await fleet.changeNode('a-0', (node) => ({
      ...node,
      metadata: { ...node.metadata, annotations: { [PLANNED_UNTIL_ANNOTATION]: rfc3339(NOW_MS) } },
    }));
    await apply([{ kind: 'endSilence', ...of('a-0'), plannedUntilMs: NOW_MS }]);
    expect((await fleet.node('a-0'))?.metadata.annotations ?? {}).toEqual({});
  });
});

describe('decisions about zones', () => {
  it('are stored with their records', async () => {
    const { fleet, apply, records, warnings } = await applying();
    await apply([createZone]);
    await apply([
      { kind: 'setZoneState', zone: 'b', from: 'Normal', to: 'PartialDisruption', size: 3, notReady: 3 },
      { kind: 'setZoneRate', zone: 'b', fromPerSecond: 0.1, toPerSecond: 0.01, state: 'PartialDisruption', size: 3 },
    ]);
    expect((await fleet.records()).zones).toMatchObject([
      { zone: 'b', state: 'PartialDisruption', limiter: { ratePerSecond: 0.01 } },
    ]);
    expect((await records()).map(({ about, slot }) => [about.name, slot])).toEqual([
      ['b', 12],
      ['b', 12],
      ['b', 12],
    ]);
    expect(warnings).toMatchObject([{ fields: { zone: 'b', from: 'Normal', to: 'PartialDisruption' } }]);
    await apply([{ kind: 'dropZone', zone: 'b' }]);
    expect((await fleet.records()).zones).toEqual([]);
  });

  it('of total disruption are only logged: the claim has stored them', async () => {
    const { apply, warnings, records } = await applying();
    const disruption = { ...NO_DISRUPTION, total: true };
    await apply([{ kind: 'enterTotalDisruption', zones: 2, disruption }]);
    await apply([{ kind: 'leaveTotalDisruption', zones: 3, disruption }]);
    expect(warnings.map(({ fields }) => fields)).toEqual([{ zones: 2 }, { zones: 3 }]);
    expect(warnings[0]?.message).not.toBe(warnings[1]?.message);
    expect(await records()).toEqual([]);
  });
});

describe('promises that are kept', () => {
  async function returning(gate = UNTRIED_GATE, budget = UNBOUNDED) {
    const { fleet, dependencies, of } = await applying();
    const untilMs = NOW_MS + 3_600_000;
    await fleet.changeNode('a-0', (node) => ({
      ...node,
      metadata: { ...node.metadata, annotations: { [PLANNED_UNTIL_ANNOTATION]: rfc3339(untilMs) } },
    }));
    const decided = { gate } as Decided;
    const health = (await fleet.health('a-0'))!;
    const tick = (nowMs: number, renewedAtMs: number) =>
      endKeptPromises(dependencies, { nowMs, nodes: [{ ...health, renewedAtMs }], decided, budget });
    const spoke = Math.max(health.statusAtMs ?? 0, health.renewedAtMs ?? 0);
    const faults = [...(await tick(spoke + 41_000, spoke)), ...(await tick(spoke + 50_000, spoke + 49_000))];
    expect(of('a-0').nodeName).toBe('a-0');
    const stands = PLANNED_UNTIL_ANNOTATION in ((await fleet.node('a-0'))?.metadata.annotations ?? {});
    return [stands, faults];
  }

  it('end when the node sends a heartbeat after a grace period of silence', async () => {
    expect(await returning()).toEqual([false, []]);
  });

  it('stay while the gate was closed, or opened later', async () => {
    expect(gateOf(UNTRIED_GATE, undefined).reasons).toEqual([]);
    expect(await returning({ ...UNTRIED_GATE, reasons: ['failingPath'] })).toEqual([true, []]);
    expect(await returning({ ...UNTRIED_GATE, freshSinceMs: NOW_MS + 10_000_000 })).toEqual([true, []]);
  });

  it('stay without time, and end at a later tick', async () => {
    expect(await returning(UNTRIED_GATE, NO_TIME)).toEqual([true, []]);
  });
});
