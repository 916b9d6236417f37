import { expect, it } from 'vitest';
import { controlledFleet } from '../../../test/support/controlled-fleet.ts';
import type { KubeNode } from '../../kinds/types.ts';
import { healthKey } from '../../store/layout.ts';
import { COUNTERS } from './health.ts';
import { ALL_ZONES, announceServices, SERVICES_ANNOTATION, settleServiceReader } from './service-readers.ts';

const routes = (node: KubeNode): KubeNode => ({
  ...node,
  metadata: { ...node.metadata, annotations: { ...node.metadata.annotations, [SERVICES_ANNOTATION]: 'nftables' } },
});

async function fleetWith(zones: Readonly<Record<string, string | undefined>>) {
  const fleet = controlledFleet();
  for (const [name, zone] of Object.entries(zones)) {
    await fleet.register(name, zone === undefined ? {} : { zone });
    await fleet.changeNode(name, routes);
  }
  await fleet.register('plain');
  await fleet.streams();
  const version = async (name: string) => {
    const row = await fleet.tables.get(healthKey(name), { consistent: true });
    return row === undefined ? undefined : COUNTERS.servicesVersion.of(row);
  };
  const listed = async () => {
    const { items } = await fleet.tables.query({ table: 'control', pk: 'service-readers', consistent: true });
    return items.map(({ sk }) => String(sk));
  };
  return { fleet, version, listed };
}

it('notifies nodes that route Services, in the zones of a change, and those without a zone', async () => {
  const { fleet, version } = await fleetWith({ a: 'z1', b: 'z2', c: undefined });
  // Once each, when it joined the list.
  expect(await Promise.all(['a', 'b', 'c', 'plain'].map(version))).toEqual([1, 1, 1, undefined]);
  expect(await announceServices(fleet.tables, ['z1'])).toBe(2);
  expect(await Promise.all(['a', 'b', 'c', 'plain'].map(version))).toEqual([2, 1, 2, undefined]);
  expect(await announceServices(fleet.tables, ['z1', ALL_ZONES])).toBe(3);
  expect(await Promise.all(['a', 'b', 'c', 'plain'].map(version))).toEqual([3, 2, 3, undefined]);
});

it('costs nothing for nodes that do not, and one write per node that does', async () => {
  const { fleet } = await fleetWith({ a: 'z1', b: 'z2' });
  fleet.consumed();
  await announceServices(fleet.tables, [ALL_ZONES]);
  const cost = fleet.consumed();
  expect([cost.writes, cost.writeUnits, cost.readUnits]).toEqual([2, 2, 1]);
  await fleet.changeNode('plain', (node) => ({ ...node, metadata: { ...node.metadata, labels: { other: 'x' } } }));
  fleet.consumed();
  await fleet.streams();
  expect(fleet.consumed().requests.filter(({ table, writeUnits }) => table === 'control' && writeUnits > 0)).toEqual(
    [],
  );
});

it('forgets nodes that stop routing, or are deleted', async () => {
  const { fleet, listed } = await fleetWith({ a: 'z1', b: undefined });
  expect(await listed()).toEqual(['a', 'b']);
  await fleet.changeNode('a', (node) => ({ ...node, metadata: { ...node.metadata, annotations: {} } }));
  await fleet.removeNode('b');
  await fleet.streams();
  expect(await listed()).toEqual([]);
});

it('follows the last Node, whatever a late worker read', async () => {
  const { fleet, listed, version } = await fleetWith({ a: 'z1' });
  const earlier = (await fleet.node('a'))!;
  const { uid = '' } = earlier.metadata;
  await fleet.changeNode('a', (node) => ({ ...node, metadata: { ...node.metadata, labels: {} } }));
  await fleet.streams();
  await settleServiceReader(fleet.tables, { nodeName: 'a', uid }, earlier);
  // Its zone is still unknown: a change of another zone concerns it.
  expect(await announceServices(fleet.tables, ['z2'])).toBe(1);
  await fleet.removeNode('a');
  await fleet.register('a');
  await fleet.changeNode('a', routes);
  await fleet.streams();
  // A worker that read that there is no Node, from the time between the two.
  await settleServiceReader(fleet.tables, { nodeName: 'a', uid }, undefined);
  expect(await listed()).toEqual(['a']);
  expect(await version('a')).toBe(1);
});
