import { describe, expect, it } from 'vitest';
import type { Ec2Api } from './api.ts';
import { CLOUD_CALLS, countedCalls } from './counted-calls.ts';

describe('counted calls', () => {
  it('count each call, whatever its outcome', async () => {
    const counts: string[] = [];
    const api: Ec2Api = {
      describeInstances: async () => ({ Reservations: [] }),
      describeVolumes: () => Promise.reject(new Error('RequestLimitExceeded')),
      detachVolume: async () => {},
    };
    const counted = countedCalls(api, { add: (name, value) => counts.push(`${name} ${value}`) });
    const input = { filter: { name: 'instance-id', values: ['i-0'] } } as const;
    expect(await counted.describeInstances(input)).toEqual({ Reservations: [] });
    await expect(counted.describeVolumes(input)).rejects.toThrow('RequestLimitExceeded');
    await counted.detachVolume({ volumeId: 'vol-0', instanceId: 'i-0', force: false });
    expect(counts).toEqual(Array(3).fill(`${CLOUD_CALLS} 1`));
  });
});
