import { describe, expect, it } from 'vitest';
import type { Ec2Api } from './api.ts';
import { CLOUD_CALLS, countedCalls } from './counted-calls.ts';

describe('counted calls', () => {
  it('count each, whatever becomes of it', async () => {
    const told: string[] = [];
    const api: Ec2Api = {
      describeInstances: async () => ({ Reservations: [] }),
      describeVolumes: () => Promise.reject(new Error('RequestLimitExceeded')),
      detachVolume: async () => {},
    };
    const counted = countedCalls(api, { add: (name, value) => told.push(`${name} ${value}`) });
    const input = { filter: { name: 'instance-id', values: ['i-0'] } } as const;
    expect(await counted.describeInstances(input)).toEqual({ Reservations: [] });
    await expect(counted.describeVolumes(input)).rejects.toThrow('RequestLimitExceeded');
    await counted.detachVolume({ volumeId: 'vol-0', instanceId: 'i-0', force: false });
    expect(told).toEqual(Array(3).fill(`${CLOUD_CALLS} 1`));
  });
});
