import { expect, it } from 'vitest';
import { type ControlledFleet, settledFleet } from '../../../test/support/controlled-fleet.ts';
import type { ItemStore } from '../../store/item-store.ts';

it('a pod that was replaced under its name before the eviction was written leaves its successor alone', async () => {
  let replace: (() => Promise<void>) | undefined;
  const between = (items: ItemStore): ItemStore => ({
    ...items,
    async transact(writes) {
      const isEviction = writes.some(({ kind, key }) => kind === 'put' && key.sk === 'default/web');
      if (isEviction) {
        const once = replace;
        replace = undefined;
        await once?.();
      }
      return items.transact(writes);
    },
  });
  const { fleet }: { fleet: ControlledFleet } = await settledFleet({ a: 2 }, { between, policy: { tickGate: 'off' } });
  await fleet.addPod('web', 'a-0', { tolerations: [] });
  await fleet.streams();
  replace = async () => {
    await fleet.removePod('web');
    await fleet.addPod('web', 'a-1', { tolerations: [] });
  };
  const taint = { key: 'example.com/maintenance', effect: 'NoExecute' as const };
  await fleet.changeNode('a-0', (node) => ({ ...node, spec: { ...node.spec, taints: [taint] } }));
  await fleet.streams();
  expect(replace).toBeUndefined();
  const successor = await fleet.pod('web');
  expect(successor?.spec?.['nodeName']).toBe('a-1');
  expect(successor?.metadata.deletionTimestamp).toBeUndefined();
  expect(successor?.status?.['conditions']).toMatchObject([{ type: 'Ready', status: 'True' }]);
});
