import { expect, it } from 'vitest';
import { passesWorkloadFilter } from '../../../server/changes/change-filters.ts';
import { SERVICES_ANNOTATION } from '../../../shared/fleet/nodes/service-readers.ts';
import type { KubeEndpointSlice, KubePod } from '../../../shared/kinds/types.ts';
import { healthKey } from '../../../shared/store/layout.ts';
import { MERGE } from '../../../test/support/api-in-memory.ts';
import { servedFleet } from '../../../test/support/served-fleet.ts';

const NAMESPACE = '/api/v1/namespaces/default';
const SLICES =
  '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name=web';

async function storyOf() {
  const { fleet, send } = servedFleet(['a', 'b']);
  let seen = 0;
  const streams = async () => {
    for (let round = 0; round < 20; round += 1) {
      await fleet.streams();
      const changes = fleet.tables.changes('objects', seen);
      seen = changes.at(-1)?.sequence ?? seen;
      if (changes.length === 0) return;
      const { faults, postponed } = await fleet.controllers.onWorkloadRecords(changes.filter(passesWorkloadFilter));
      expect([...faults, ...postponed]).toEqual([]);
    }
  };
  for (const name of ['a', 'b']) {
    await fleet.register(name, { zone: 'site-1' });
    await fleet.changeNode(name, (node) => ({
      ...node,
      metadata: { ...node.metadata, annotations: { [SERVICES_ANNOTATION]: 'nftables' } },
    }));
    await fleet.post(name);
  }
  const spec = { selector: { app: 'web' }, ports: [{ port: 80 }] };
  await send('POST', `${NAMESPACE}/services`, { body: { metadata: { name: 'web' }, spec } });
  for (const [name, ip] of [
    ['a', '10.0.0.1'],
    ['b', '10.0.0.2'],
  ] as const) {
    const containers = [{ name: 'c', image: 'i' }];
    const body = { metadata: { name: `on-${name}`, labels: { app: 'web' } }, spec: { nodeName: name, containers } };
    const pod: KubePod = await send('POST', `${NAMESPACE}/pods`, { body });
    const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }], conditions: [{ type: 'Ready', status: 'True' }] };
    await send('PUT', `${NAMESPACE}/pods/on-${name}/status`, { body: { ...pod, status } });
  }
  await streams();
  return {
    fleet,
    send,
    streams,
    async endpoints() {
      const { items } = (await send('GET', SLICES)) as unknown as { items: KubeEndpointSlice[] };
      const all = items.flatMap(({ endpoints = [] }) => endpoints);
      return all.map(
        ({ nodeName, zone, conditions }) => `${nodeName} ${zone} ${conditions?.ready} ${conditions?.serving}`,
      );
    },
    version: async () => (await fleet.tables.get(healthKey('b'), { consistent: true }))?.['E'],
  };
}

it('endpoints of a silent node are not ready one grace period and one tick after its last heartbeat', async () => {
  const { fleet, streams, endpoints, version } = await storyOf();
  expect(await endpoints()).toEqual(['a site-1 true true', 'b site-1 true true']);
  const before = await version();
  // Node a sends no heartbeat from 100 s on.
  await fleet.run(5, 135, async (seconds) => {
    await fleet.beat('b', ...(seconds <= 100 ? ['a'] : []));
    await streams();
    expect(await endpoints()).toEqual(['a site-1 true true', 'b site-1 true true']);
  });
  await fleet.run(140, 145, () => fleet.beat('b'));
  await streams();
  expect(await endpoints()).toEqual(['a site-1 false false', 'b site-1 true true']);
  expect(await version()).not.toBe(before);
});

it('endpoints of a pod that is evicted by a drain, or is not ready, leave at once', async () => {
  const { send, streams, endpoints, fleet, version } = await storyOf();
  const before = await version();
  fleet.at(20);
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'on-a', namespace: 'default' } };
  await send('POST', `${NAMESPACE}/pods/on-a/eviction`, { body: eviction });
  await streams();
  expect(await endpoints()).toEqual(['a site-1 false true', 'b site-1 true true']);
  expect(await version()).not.toBe(before);
  const body = { status: { conditions: [{ type: 'Ready', status: 'False' }] } };
  await send('PATCH', `${NAMESPACE}/pods/on-b/status`, { body, contentType: MERGE });
  await streams();
  expect(await endpoints()).toEqual(['a site-1 false true', 'b site-1 false false']);
});
