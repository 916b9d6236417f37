import { describe, expect, it } from 'vitest';
import { addressesOf, addressesOfName } from './addresses.ts';

it('the addresses of a machine are those of all interfaces, with their family', () => {
  const of = (address: string, family: 'IPv4' | 'IPv6') => ({ address, family }) as never;
  expect(addressesOf({ eth0: [of('10.0.0.7', 'IPv4'), of('fd00::7', 'IPv6')], none: undefined })).toEqual([
    { interfaceName: 'eth0', address: '10.0.0.7', family: 4 },
    { interfaceName: 'eth0', address: 'fd00::7', family: 6 },
  ]);
});

describe('a name', () => {
  it('has the addresses that DNS has, with their family', async () => {
    const found = [
      { address: '10.0.0.7', family: 4 },
      { address: 'fd00::7', family: 6 },
    ];
    expect(await addressesOfName('n1', async () => found)).toEqual(found);
  });

  it('has none when DNS does not know it, or does not answer', async () => {
    const fault = Object.assign(new Error('not found'), { code: 'ENOTFOUND' });
    expect(await addressesOfName('n1', () => Promise.reject(fault))).toEqual([]);
  });

  it('fails with a fault of ours', async () => {
    for (const fault of [new TypeError('no function'), 'text'])
      await expect(addressesOfName('n1', () => Promise.reject(fault))).rejects.toBe(fault);
  });
});
