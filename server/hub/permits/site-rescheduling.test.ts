import { expect, it } from 'vitest';
import { SITE_HUB } from '../../../shared/kinds/pods/site-permit.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { memoryItemStore } from '../../../shared/store/memory/item-store.ts';
import { openSiteRescheduling } from './site-rescheduling.ts';

const podOn = (nodeName: string, uid: string, hub: string): KubePod => ({
  metadata: {
    ...{ namespace: 'plant', name: uid, uid },
    annotations: { [SITE_HUB]: hub, 'nodekeeper.dev/offline-stop-after': '10m' },
  },
  spec: { nodeName },
});

it('releases pods of the machine that asks, those that no longer exist, and no others', async () => {
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
    monotonicMs: () => 1,
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
  const { released } = await site.permit('m1', { released: ['own', 'other', 'of-another-hub', 'gone'] });
  expect(released).toEqual(['own', 'gone']);
  expect((await site.permit('m2', {})).permitted).toEqual(['other']);
});
