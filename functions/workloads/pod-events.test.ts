import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { clusterObjects } from '../../shared/kinds/resources.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { recordFailedCreate, recordPodEvents } from './pod-events.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const about = { kind: 'ReplicaSet', namespace: 'd', name: 'web', uid: 'u' } as const;
const of = { about, source: 'replicaset-controller' };

function recorder() {
  const random = { uuid: randomUUID, fraction: () => 0.5 };
  const objects = clusterObjects({ items: memoryItemStore(), clock: { nowMs: () => NOW_MS }, random });
  const dependencies = { objects, random };
  return {
    record: (done: Parameters<typeof recordPodEvents>[2]) => recordPodEvents(dependencies, of, done, NOW_MS),
    fail: (failed: Parameters<typeof recordFailedCreate>[2]) => recordFailedCreate(dependencies, of, failed, NOW_MS),
    events: async () =>
      (await objects.list({ resource: 'events' })).objects
        .map((event) => `${event['type']} ${event['reason']} ${event['message']}`)
        .toSorted(),
  };
}
const names = (count: number) => Array.from({ length: count }, (_, index) => `p${index}`);

describe('events about the pods of an owner', () => {
  it('are one for each pod that was created or deleted', async () => {
    const { record, events } = recorder();
    await record({ act: 'created', names: ['a', 'b'] });
    await record({ act: 'deleted', names: ['a'] });
    expect(await events()).toEqual([
      'Normal SuccessfulCreate Created pod: a',
      'Normal SuccessfulCreate Created pod: b',
      'Normal SuccessfulDelete Deleted pod: a',
    ]);
  });

  it('are one for more than ten pods', async () => {
    const { record, events } = recorder();
    await record({ act: 'created', names: names(10) });
    expect(await events()).toHaveLength(10);
    const many = recorder();
    await many.record({ act: 'created', names: names(11) });
    expect(await many.events()).toEqual(['Normal SuccessfulCreate (combined from similar events): Created pod: p0']);
  });

  it('are recorded once for a pod, and again for a later pod of its name', async () => {
    const { record, events } = recorder();
    const again = async (occurrence?: string) => {
      await record({ act: 'created', names: ['a'], ...(occurrence === undefined ? {} : { occurrence }) });
      return (await events()).length;
    };
    expect([await again(), await again(), await again('2'), await again('2'), await again('3')]).toEqual([
      1, 1, 2, 2, 3,
    ]);
  });

  it('have the text of their owner', async () => {
    const { record, events } = recorder();
    await record({ act: 'deleted', names: ['a'], text: (act, name) => `${act} ${name} of web` });
    expect(await events()).toEqual(['Normal SuccessfulDelete deleted a of web']);
  });
});

it('a failed creation is an event for each generation and message', async () => {
  const { fail, events } = recorder();
  await fail({ generation: 1, message: 'quota' });
  await fail({ generation: 1, message: 'quota' });
  expect(await events()).toEqual(['Warning FailedCreate Error creating: quota']);
  await fail({ generation: 1, message: 'other', text: (message) => `no: ${message}` });
  await fail({ generation: 2, message: 'quota' });
  expect(await events()).toEqual([
    'Warning FailedCreate Error creating: quota',
    'Warning FailedCreate Error creating: quota',
    'Warning FailedCreate no: other',
  ]);
});
