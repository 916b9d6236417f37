import { describe, expect, it } from 'vitest';
import type { Machine } from '../ports/machine.ts';
import { parseIp } from '../rules/ip-address.ts';
import { findAddresses } from './node-addresses.ts';

const config = { nodeName: 'edge-7', cloudProvider: '' } as const;
const hostname = { type: 'Hostname', address: 'edge-7' };

function machineWith(names: readonly string[], routes: Partial<Record<4 | 6, string>>) {
  const asked: string[] = [];
  const machine: Pick<Machine, 'hostname' | 'addresses' | 'defaultAddress' | 'lookup'> = {
    hostname: () => 'edge-7',
    addresses: () => [{ interfaceName: 'eth0', address: '10.0.0.5', family: 4 }],
    async lookup(name) {
      asked.push(`lookup ${name}`);
      return names.map((address) => ({ address, family: 4 }));
    },
    async defaultAddress(family) {
      asked.push(`route ${family}`);
      return routes[family];
    },
  };
  return { machine, asked };
}

describe('finding the addresses of the node', () => {
  it('reads neither DNS nor routes when the node IP is configured', async () => {
    const { machine, asked } = machineWith([], {});
    const nodeIps = [parseIp('10.0.0.5')].filter((ip) => ip !== undefined);
    expect(await findAddresses(machine, config, { nodeIps, present: [] })).toMatchObject({ kind: 'decided' });
    expect(asked).toEqual([]);
  });

  it('uses the default route when DNS has no address of this host', async () => {
    const { machine, asked } = machineWith(['127.0.1.1', '192.0.2.1'], { 4: '10.0.0.5' });
    expect(await findAddresses(machine, config, { nodeIps: [], present: [] })).toEqual({
      kind: 'decided',
      addresses: [{ type: 'InternalIP', address: '10.0.0.5' }, hostname],
    });
    expect(asked).toEqual(['lookup edge-7', 'route 4', 'route 6']);
  });

  it('prefers IPv6 when the node IP selects only the family', async () => {
    const { machine } = machineWith([], { 4: '10.0.0.5', 6: 'fd00::5' });
    const nodeIps = [parseIp('::')].filter((ip) => ip !== undefined);
    expect(await findAddresses(machine, config, { nodeIps, present: [] })).toMatchObject({
      addresses: [{ type: 'InternalIP', address: 'fd00::5' }, hostname],
    });
  });

  it('names the missing address when there is none', async () => {
    const { machine } = machineWith([], {});
    expect(await findAddresses(machine, config, { nodeIps: [], present: [] })).toEqual({
      kind: 'failed',
      message: "can't get ip address of node edge-7. error: no interface has a default route",
    });
  });
});
