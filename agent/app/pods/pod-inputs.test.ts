import { expect, it } from 'vitest';
import { memoryVolumes } from '../../../test/support/memory-volumes.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import { until } from '../../../test/support/until.ts';
import { PodInputs } from './pod-inputs.ts';

it('volumes that cannot be removed do not keep those of other pods', async () => {
  const memory = memoryVolumes();
  const options = { groupId: undefined, inMemory: false };
  for (const podUid of ['bad', 'gone', 'kept']) memory.makeEmptyDir({ podUid, volume: 'data' }, options);
  const remove = async (podUid: string): Promise<void> => {
    if (podUid === 'bad') throw new Error('EPERM');
    await memory.remove(podUid);
  };
  const warnings: unknown[] = [];
  const inputs = new PodInputs({
    api: { send: async () => ({ kind: 'answered', status: 404, body: {} }), reconnect() {} },
    volumes: { ...memory, remove },
    time: new SteppedTime(0),
    fraction: () => 0,
    log: { debug() {}, info() {}, error() {}, warn: (_, fields) => void warnings.push(fields?.['podUid']) },
    hostIp: () => undefined,
    allocatable: () => undefined,
    recordEvent: () => {},
    services: {},
  });
  inputs.keepOnly(new Set(['kept']));
  await until(() => warnings.length > 0, { withinMs: 5_000, what: 'a warning' });
  expect(memory.podUids()).toEqual(['bad', 'kept']);
  expect(warnings).toEqual(['bad']);
});
