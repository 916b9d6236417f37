import { expect, it } from 'vitest';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { controlledFleet } from '../../test/support/controlled-fleet.ts';

it('a Node that always loses its block to other processes gets 64 attempts, and every eighth one reads the store again', async () => {
  const reads: number[] = [];
  let attempts = 0;
  const between = (items: ItemStore): ItemStore => ({
    ...items,
    query(request) {
      if (request.pk.startsWith('cidr#') && request.after === undefined) reads.push(attempts);
      return items.query(request);
    },
    async transact(writes) {
      const index = writes.findIndex(({ key }) => key.pk.startsWith('cidr#'));
      if (index < 0) return items.transact(writes);
      attempts += 1;
      return { kind: 'refused', failures: [{ index }] };
    },
  });
  const fleet = controlledFleet({ policy: { clusterCIDRs: ['10.0.0.0/16'] }, between });
  await fleet.register('n1');
  await expect(fleet.streams()).rejects.toMatchObject({ name: 'StoreFault', code: 'throttled', retryable: true });
  // The stream runs the work once more in place before it parks it.
  expect(attempts).toBe(2 * 64);
  expect([...new Set(reads)].slice(0, 9)).toEqual([0, 8, 16, 24, 32, 40, 48, 56, 64]);
  expect(await fleet.events('CIDRAssignmentFailed')).toHaveLength(1);
  expect((await fleet.node('n1'))?.spec?.podCIDRs).toBeUndefined();
});
