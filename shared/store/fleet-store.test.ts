import { expect, it } from 'vitest';
import { memoryItemStore } from '../adapters/memory/item-store.ts';
import { StoreFault } from '../ports/item-store.ts';
import { fleetStore } from './fleet-store.ts';

it('the removal of a node from the queue fails with the write', async () => {
  const fault = new StoreFault('timeout', 'no answer', { retryable: true });
  const failing = {
    ...memoryItemStore(),
    write: async () => {
      throw fault;
    },
  };
  const waiting = { zone: 'r/a', nodeName: 'n1', uid: 'u1', addedAtMs: 0 };
  await expect(fleetStore(failing).dequeue(waiting)).rejects.toBe(fault);
  await expect(fleetStore(failing).dropZone('r/a', 0)).rejects.toBe(fault);
});
