/**
 * Cluster events for the event bus: published after the transition is stored, repeated after a crash, never blocking.
 */
import { describe, expect, it } from 'vitest';
import { settledFleet } from '../../test/support/controlled-fleet.ts';
import { eventFaults } from '../../test/support/event-schemas.ts';
import { dyingStore } from '../../test/support/failing-store.ts';
import { type ClusterEvent, detailOf, EVENT_SOURCE, type EventBus } from './cluster-event.ts';

function hearing(takes: () => boolean = () => true) {
  const heard: ClusterEvent[] = [];
  const eventBus: EventBus = {
    publish: async (events, nowMs) => {
      for (const event of events) {
        const detail = detailOf(event, { nowMs, cluster: 'test' });
        expect(eventFaults({ source: EVENT_SOURCE, 'detail-type': event.type, detail })).toEqual([]);
      }
      if (!takes()) return { failed: events, reason: 'no answer' };
      heard.push(...events);
      return { failed: [] };
    },
  };
  return { eventBus, heard, types: () => heard.map(({ type }) => type), forget: () => heard.splice(0, heard.length) };
}

const others =
  (names: readonly string[], ...silent: string[]) =>
  (name: string) =>
    names.includes(name) && !silent.includes(name);

describe('events of the cluster', () => {
  it('report a node that registers, becomes unreachable, recovers and is deleted', async () => {
    const { eventBus, heard, types, forget } = hearing();
    const { fleet, names } = await settledFleet({ a: 4 }, { eventBus });
    expect(types()).toEqual(['NodeReady', 'NodeReady', 'NodeReady', 'NodeReady']);
    forget();
    const beating = names.filter(others(names, 'a-0'));
    await fleet.run(0, 60, () => fleet.beat(...beating));
    expect(heard).toMatchObject([
      { type: 'NodeNotReady', node: { name: 'a-0', zone: 'a' }, ready: 'Unknown', reason: 'NodeStatusUnknown' },
    ]);
    forget();
    await fleet.post('a-0');
    await fleet.streams();
    expect(types()).toEqual(['NodeReady']);
    forget();
    await fleet.post('a-1', 'False');
    await fleet.streams();
    expect(heard).toMatchObject([{ type: 'NodeNotReady', node: { name: 'a-1' }, ready: 'False' }]);
    forget();
    await fleet.removeNode('a-0');
    await fleet.streams();
    expect(types()).toEqual(['NodeDeleted']);
  });

  it('report each evicted pod once, pods without a grace period included', async () => {
    const { eventBus, heard } = hearing();
    const { fleet, names } = await settledFleet({ a: 9 }, { eventBus });
    const atOnce = [{ key: 'node.kubernetes.io/unreachable', operator: 'Exists', tolerationSeconds: 0 }] as const;
    await fleet.addPod('slow', 'a-0');
    await fleet.addPod('quick', 'a-0', { tolerations: [...atOnce] });
    await fleet.changePod('quick', (pod) => ({ ...pod, spec: { ...pod.spec, terminationGracePeriodSeconds: 0 } }));
    await fleet.streams();
    const beating = names.filter(others(names, 'a-0'));
    await fleet.run(0, 400, () => fleet.beat(...beating));
    const evicted = heard.filter((event) => event.type === 'PodEvicted');
    expect(evicted).toMatchObject([
      { pod: { namespace: 'default', name: 'quick' }, nodeName: 'a-0', reason: 'DeletionByTaintManager' },
      { pod: { namespace: 'default', name: 'slow' }, nodeName: 'a-0', reason: 'DeletionByTaintManager' },
    ]);
    expect(await fleet.pod('quick')).toBeUndefined();
  });

  it('report that a zone becomes fully disrupted and recovers, and nothing in between', async () => {
    const { eventBus, heard } = hearing();
    const { fleet, names, ofZone } = await settledFleet({ a: 3, b: 3 }, { eventBus });
    await fleet.run(0, 120, () => fleet.beat(...ofZone('b')));
    for (const name of names) await fleet.post(name);
    await fleet.run(125, 180, () => fleet.beat(...names));
    expect(heard.filter(({ type }) => type.startsWith('Zone'))).toMatchObject([
      { type: 'ZoneDisrupted', zone: 'a', state: 'FullDisruption', nodes: 3, notReady: 3 },
      { type: 'ZoneRecovered', zone: 'a', state: 'Normal', nodes: 3, notReady: 0 },
    ]);
  });

  it('report that the safety gate closes and opens', async () => {
    const { eventBus, heard } = hearing();
    let broken = false;
    const probe = {
      beat: async () => (broken ? ({ kind: 'failed', reason: '503' } as const) : ({ kind: 'accepted' } as const)),
    };
    const { fleet, names } = await settledFleet({ a: 3 }, { eventBus, probe });
    await fleet.run(0, 60, () => fleet.beat(...names));
    broken = true;
    await fleet.run(65, 100, () => fleet.beat(...names));
    broken = false;
    await fleet.run(105, 200, () => fleet.beat(...names));
    const told = heard.filter(({ type }) => type.startsWith('Gate'));
    expect(told).toMatchObject([{ type: 'GateClosed', reasons: ['failingPath'] }, { type: 'GateOpened' }]);
  });

  it.each([
    ['ZoneDisrupted', 'zone'],
    ['GateClosed', 'gate'],
  ])('repeat %s with the same id when the tick that published it is killed at any call', async (type, what) => {
    for (let atCall = 1; atCall < 120; atCall += 1) {
      const { eventBus, heard } = hearing();
      let broken = false;
      const probe = {
        beat: async () => (broken ? ({ kind: 'failed', reason: '503' } as const) : ({ kind: 'accepted' } as const)),
      };
      const { fleet, ofZone, names } = await settledFleet({ a: 3, b: 3 }, { eventBus, probe });
      const beats = () => (what === 'zone' ? fleet.beat(...ofZone('b')) : fleet.beat(...names));
      await fleet.run(0, 40, beats);
      broken = what === 'gate';
      fleet.at(45);
      await beats();
      const dying = dyingStore(fleet.tables, atCall, false);
      await fleet
        .makeControllers(dying.items)
        .tickNodeMonitor(fleet.slot())
        .catch(() => undefined);
      const died = dying.calls() >= atCall;
      const toldBefore = heard.length;
      await fleet.run(50, 60, beats);
      const ids = heard.filter((event) => event.type === type).map(({ id }) => id);
      expect(ids.length).toBeGreaterThan(0);
      expect(new Set(ids).size).toBe(1);
      if (!died) {
        // A tick that completes publishes it once, and is that very tick.
        expect(heard.slice(0, toldBefore).filter((event) => event.type === type)).toHaveLength(1);
        expect(ids).toHaveLength(1);
        return;
      }
    }
    throw new Error('a tick of more calls than were tried');
  });

  it('have the same ids when a stream repeats its records', async () => {
    const { eventBus, heard } = hearing();
    const { fleet } = await settledFleet({ a: 2 }, { eventBus });
    const first = heard.map(({ id }) => id);
    await fleet.controllers.onObjectRecords(
      fleet.tables.changes('objects', 0).filter(({ key }) => key.pk.startsWith('o#nodes#')),
    );
    expect(
      heard
        .map(({ id }) => id)
        .slice(first.length)
        .sort(),
    ).toEqual(first.toSorted());
  });

  it('stop no controller when the bus rejects them: they are counted and logged', async () => {
    const { eventBus } = hearing(() => false);
    const { fleet, ofZone } = await settledFleet({ a: 3, b: 3 }, { eventBus });
    await fleet.run(0, 60, () => fleet.beat(...ofZone('b')));
    for (const name of ofZone('a')) expect(await fleet.ready(name)).toBe('Unknown');
    // Six that became Ready, three that became unreachable, one zone.
    const lost = fleet.metrics.filter(({ name }) => name === 'events_not_sent_total');
    expect(lost.reduce((sum, { value }) => sum + value, 0)).toBe(10);
    expect(fleet.told.filter(({ message }) => message === 'events were not sent').length).toBeGreaterThan(0);
  });
});
