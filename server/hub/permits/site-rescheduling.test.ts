import { expect, it } from 'vitest';
import { SITE_HUB } from '../../../shared/kinds/pods/site-permit.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';
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

it('releases pods of the machine that asks, those that no longer exist, and no others', async () => {
  let monotonicMs = 1;
  const pods = [podOn('m1', 'own', 'hub'), podOn('m2', 'other', 'hub'), podOn('m1', 'of-another-hub', 'hub-2')];
  const site = await openSiteRescheduling({
    hubName: 'hub',
    items: memoryItemStore(),
    objects: {
      list: async <T>() => ({ objects: pods as unknown as readonly T[] }),
      listByNode: async <T>(name: string) =>
        pods.filter(({ spec }) => spec?.nodeName === name) as unknown as readonly T[],
    },
    replica: { holds: () => true },
    upstream: { send: () => Promise.reject(new Error('no link')) },
    monotonicMs: () => monotonicMs,
    nowMs: () => 0,
    random: { uuid: () => '11111111-2222-4333-8444-555555555555' },
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  });
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
