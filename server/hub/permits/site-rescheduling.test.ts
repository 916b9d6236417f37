import { expect, it } from 'vitest';
import { SITE_HUB } from '../../../shared/kinds/pods/site-permit.ts';
import type { KubeNode, KubePod, KubeSitePolicy } from '../../../shared/kinds/types.ts';
import { memoryItemStore } from '../../../shared/store/memory/item-store.ts';
import { openSiteRescheduling, UNKNOWN_RELEASES_MAX } from './site-rescheduling.ts';

const podOn = (nodeName: string, uid: string, hub: string): KubePod => ({
  metadata: {
    ...{ namespace: 'plant', name: uid, uid },
    annotations: { [SITE_HUB]: hub, 'nodekeeper.dev/offline-stop-after': '10m' },
  },
  spec: { nodeName },
});

const EVERYTHING = ['own', 'other', 'of-another-hub', 'gone'];

interface World {
  readonly pods: readonly KubePod[];
  readonly nodes?: readonly KubeNode[];
  readonly policies?: readonly KubeSitePolicy[];
  readonly monotonicMs: () => number;
}

function openSite({ pods, nodes = [], policies = [], monotonicMs }: World) {
  const kept: Record<string, readonly unknown[]> = { pods, nodes, sitepolicies: policies };
  let uids = 0;
  return openSiteRescheduling({
    hubName: 'hub',
    items: memoryItemStore(),
    objects: {
      list: async <T>({ resource }: { readonly resource: string }) => ({ objects: kept[resource] as readonly T[] }),
      listByNode: async <T>(name: string) =>
        pods.filter(({ spec }) => spec?.nodeName === name) as unknown as readonly T[],
    },
    replica: { holds: () => true },
    upstream: { send: () => Promise.reject(new Error('no link')) },
    monotonicMs,
    nowMs: () => 0,
    random: {
      uuid: () => {
        uids += 1;
        return `${uids}1111111-2222-4333-8444-555555555555`;
      },
    },
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  });
}

it('releases pods of the machine that asks, those that no longer exist, and no others', async () => {
  let monotonicMs = 1;
  const pods = [podOn('m1', 'own', 'hub'), podOn('m2', 'other', 'hub'), podOn('m1', 'of-another-hub', 'hub-2')];
  const site = await openSite({ pods, monotonicMs: () => monotonicMs });
  site.onRead();
  // Before the first read over a new file nothing is released.
  expect((await site.permit('m1', { released: ['own'] })).released).toEqual([]);
  pods.length = 0;
  await site.look();
  pods.push(podOn('m1', 'own', 'hub'), podOn('m2', 'other', 'hub'), podOn('m1', 'of-another-hub', 'hub-2'));
  expect((await site.permit('m1', { released: EVERYTHING })).released).toEqual(['own', 'gone']);
  expect((await site.permit('m2', {})).permitted).toEqual(['other']);

  const releasedOf = async (nodeName: string, uids: readonly string[]) =>
    (await site.permit(nodeName, { released: uids })).released.length;
  // Each machine has one such request per second, and its share of what the hub keeps.
  expect(await releasedOf('m1', ['gone-too'])).toBe(0);
  expect(await releasedOf('m2', ['gone-too'])).toBe(1);
  monotonicMs += 1_000;
  const many = Array.from({ length: UNKNOWN_RELEASES_MAX }, (_, index) => `gone-${index}`);
  expect(await releasedOf('m1', many)).toBe(0);
  expect(await releasedOf('m1', many.slice(5))).toBe(UNKNOWN_RELEASES_MAX - 5);
  monotonicMs += 1_000;
  // The copy is read anew: what it does not have is forgotten.
  await site.look();
  expect(await releasedOf('m1', many)).toBe(UNKNOWN_RELEASES_MAX);
});

it('moves all pods of a silent machine in one look, each beside those before it', async () => {
  let monotonicMs = 1;
  const machine = (name: string, podsMax: string): KubeNode => ({
    metadata: { name, annotations: { [SITE_HUB]: 'hub' } },
    status: { allocatable: { cpu: '4', memory: '4Gi', pods: podsMax }, conditions: [{ type: 'Ready', status: 'True' }] },
  });
  const site = await openSite({
    pods: ['a', 'b', 'c', 'd'].map((uid) => podOn('m1', uid, 'hub')),
    nodes: [machine('m1', '9'), machine('m2', '1'), machine('m3', '2')],
    policies: [
      { metadata: { name: 'plant' }, spec: { hub: 'hub', nodes: ['m1', 'm2', 'm3'], namespaces: ['plant'] } },
    ],
    monotonicMs: () => monotonicMs,
  });
  site.onRead();
  await site.look();
  monotonicMs += 3_600_000;
  await site.permit('m2', {});
  await site.permit('m3', {});
  await site.look();

  const copiesOn = async (nodeName: string) => (await site.permit(nodeName, {})).copies.length;
  expect([await copiesOn('m2'), await copiesOn('m3')]).toEqual([1, 2]);
});
