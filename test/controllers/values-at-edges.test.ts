/** What a tick measures, the order of equal pods, names of events, and reads of more than one page. */
import { expect, it } from 'vitest';
import { cidrStore } from '../../functions/object-stream/cidr-store.ts';
import { PROBES_PER_TICK_MAX, probesInWindow } from '../../shared/fleet/gate.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { type CollectablePod, terminatedRemovals } from '../../shared/kinds/pods/collection.rule.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { controlledFleet, settledFleet } from '../support/controlled-fleet.ts';

it('a tick that marks a node emits how many it marked, and how long the node was silent', async () => {
  const { fleet } = await settledFleet({ a: 3 });
  await fleet.run(0, 60, async (seconds) => seconds % 10 === 0 && fleet.beat('a-0', 'a-1'));
  const valuesOf = (name: string) => fleet.metrics.filter((metric) => metric.name === name).map(({ value }) => value);
  expect(valuesOf('marked_nodes')).toEqual([1]);
  expect(valuesOf('detection_seconds')).toEqual([45]);
  expect(fleet.told).toContainEqual(expect.objectContaining({ level: 'info', message: 'silent nodes marked Unknown' }));
});

it('the name of an event ends with sixteen hexadecimal digits', async () => {
  const { fleet } = await settledFleet({ a: 12 });
  const names = (await fleet.events('RegisteredNode')).map(({ metadata }) => metadata.name);
  expect(names).toHaveLength(12);
  for (const name of names) expect(name).toMatch(/^a-\d+\.[0-9a-f]{16}$/);
});

it('of terminated pods with the same name and age, that of the first namespace is removed first', () => {
  const pod = (namespace: string): CollectablePod => ({
    namespace,
    name: 'p',
    uid: namespace,
    nodeName: 'n1',
    phase: 'Succeeded',
    reason: undefined,
    createdAtMs: 0,
    terminating: false,
  });
  const removed = (...namespaces: string[]) =>
    terminatedRemovals(namespaces.map(pod), namespaces.length - 1).map(({ namespace }) => namespace);
  expect(removed('b', 'a', 'c')).toEqual(['a']);
  expect(removed('a', 'c', 'b')).toEqual(['a']);
});

it('blocks of a cluster CIDR are read over all pages', async () => {
  const items = memoryItemStore();
  const paged = cidrStore({ ...items, query: (request) => items.query({ ...request, limit: 2 }) });
  for (let block = 0; block < 5; block += 1) {
    await paged.occupy('10.0.0.0/16#24', { first: block, last: block }, { nodeName: `n-${block}`, uid: `u-${block}` });
  }
  const { taken } = await paged.read('10.0.0.0/16#24');
  expect(taken.map(({ nodeName }) => nodeName)).toEqual(['n-0', 'n-1', 'n-2', 'n-3', 'n-4']);
});

it('an event about pod CIDRs names its controller as source', async () => {
  const fleet = controlledFleet({ policy: { clusterCIDRs: ['10.0.0.0/24'], nodeCIDRMaskSizeIPv4: 24 } });
  for (const name of ['n-0', 'n-1']) await fleet.register(name);
  await fleet.streams();
  const [event] = await fleet.events('CIDRNotAvailable');
  expect(event).toMatchObject({ source: { component: 'cidrAllocator' } });
});

it('the gate evaluates every probe of the last two heartbeat intervals', () => {
  const nowMs = 1_000_000;
  const probes = [15_000, 10_000, 5_000, 0].flatMap((agoMs) =>
    Array.from({ length: PROBES_PER_TICK_MAX }, () => ({ sentAtMs: nowMs - agoMs, accepted: agoMs < 15_000 })),
  );
  const older = { sentAtMs: nowMs - 20_000, accepted: false };
  const policy = { ...defaultPolicy, beatIntervalSeconds: 10, nodeMonitorPeriodSeconds: 5 };
  expect(probesInWindow([older, ...probes], nowMs, policy)).toEqual(probes);
});
