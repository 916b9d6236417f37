import { expect, it } from 'vitest';
import type { ItemStore } from '../../../shared/store/item-store.ts';
import { settledFleet } from '../../../test/support/controlled-fleet.ts';

it('a tick without a node to check reads no VolumeAttachment', async () => {
  const partitions: string[] = [];
  const between = (items: ItemStore): ItemStore => ({
    ...items,
    query(request) {
      partitions.push(request.pk);
      return items.query(request);
    },
  });
  const { fleet } = await settledFleet({ a: 1 }, { hasCloud: true, between });
  await fleet.attach('va', 'a-0');
  await fleet.addPod('db', 'a-0', { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] });
  await fleet.streams();
  // The first tick stores the nodes that have attachments.
  fleet.at(0);
  await fleet.collect();
  fleet.at(20);
  partitions.length = 0;
  await fleet.collect();
  expect(partitions).toContain('pod-gc');
  expect(partitions.filter((pk) => pk.includes('volumeattachments'))).toEqual([]);

  await fleet.removePod('db');
  await fleet.streams();
  fleet.at(40);
  partitions.length = 0;
  await fleet.collect();
  expect(partitions.filter((pk) => pk.includes('volumeattachments'))).not.toEqual([]);
});
