import { describe, expect, it } from 'vitest';
import { type ApiInMemory, apiInMemory, MERGE } from '../../../test/support/api-in-memory.ts';
import type { ItemStore } from '../../store/item-store.ts';
import { memoryItemStore } from '../../store/memory/item-store.ts';

const SERVICES = '/api/v1/namespaces/default/services';

const create = (api: ApiInMemory, name: string, ports: readonly object[], more: object = {}) =>
  api.send('POST', SERVICES, { body: { metadata: { name }, spec: { type: 'NodePort', ports, ...more } } });
const change = (api: ApiInMemory, name: string, spec: object) =>
  api.send('PATCH', `${SERVICES}/${name}`, { body: { spec }, contentType: MERGE });
const portsIn = ({ body }: { body: { spec: { ports: { nodePort?: number }[] } } }) =>
  body.spec.ports.map(({ nodePort }) => nodePort);
const refusal = ({ code, body }: { code: number; body: { message: string } }) => `${code} ${body.message}`;

describe('node ports', () => {
  it('are assigned from the range, a different one for each port', async () => {
    const api = apiInMemory();
    const ports = [
      { name: 'a', port: 80 },
      { name: 'b', port: 81 },
    ];
    const numbers = [...portsIn(await create(api, 'one', ports)), ...portsIn(await create(api, 'two', ports))];
    expect(new Set(numbers).size).toBe(4);
    for (const number of numbers) expect(number).toSatisfy((each: number) => each >= 30_000 && each <= 32_767);
  });

  it('are those that are requested; one port number has the same one for each protocol', async () => {
    const api = apiInMemory();
    const ports = [
      { name: 'dns', port: 53, protocol: 'UDP' },
      { name: 'dns-tcp', port: 53, protocol: 'TCP', nodePort: 30_053 },
      { name: 'other', port: 54, protocol: 'TCP' },
      { name: 'other-udp', port: 54, protocol: 'UDP' },
    ];
    const [dns, dnsTcp, other, otherUdp] = portsIn(await create(api, 'dns', ports));
    expect([dns, dnsTcp]).toEqual([30_053, 30_053]);
    expect(other).toBe(otherUdp);
    expect(other).not.toBe(30_053);
  });

  it('are refused outside the range, and while another Service has them', async () => {
    const api = apiInMemory();
    expect(refusal(await create(api, 'a', [{ port: 80, nodePort: 80 }]))).toBe(
      '422 Service "a" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767',
    );
    expect((await create(api, 'a', [{ port: 80, nodePort: 30_080 }])).code).toBe(201);
    const taken = [
      { name: 'x', port: 81, nodePort: 30_081 },
      { name: 'y', port: 80, nodePort: 30_080 },
    ];
    expect(refusal(await create(api, 'b', taken))).toBe(
      '422 Service "b" is invalid: spec.ports[1].nodePort: Invalid value: 30080: provided port is already allocated',
    );
    // The refused creation holds nothing.
    expect((await create(api, 'c', [{ port: 80, nodePort: 30_081 }])).code).toBe(201);
  });

  it('stay over updates that leave them out, and are released when they are changed or no longer needed', async () => {
    const api = apiInMemory();
    await create(api, 'a', [{ name: 'http', port: 80, nodePort: 30_080 }]);
    expect(portsIn(await change(api, 'a', { ports: [{ name: 'http', port: 8_080 }] }))).toEqual([30_080]);
    expect(portsIn(await change(api, 'a', { ports: [{ name: 'http', port: 80, nodePort: 30_090 }] }))).toEqual([
      30_090,
    ]);
    expect((await create(api, 'b', [{ port: 80, nodePort: 30_080 }])).code).toBe(201);
    expect(portsIn(await change(api, 'a', { type: 'ClusterIP' }))).toEqual([undefined]);
    expect((await create(api, 'c', [{ port: 80, nodePort: 30_090 }])).code).toBe(201);
    await api.send('DELETE', `${SERVICES}/c`);
    expect((await create(api, 'd', [{ port: 80, nodePort: 30_090 }])).code).toBe(201);
    expect(portsIn(await change(api, 'a', { type: 'NodePort' }))[0]).toBeGreaterThanOrEqual(30_000);
  });

  it('of a load balancer are assigned unless it says that it needs none', async () => {
    const api = apiInMemory();
    const type = 'LoadBalancer';
    expect(portsIn(await create(api, 'a', [{ port: 80 }], { type }))[0]).toBeGreaterThanOrEqual(30_000);
    const without = { type, allocateLoadBalancerNodePorts: false };
    expect(portsIn(await create(api, 'b', [{ port: 80 }], without))).toEqual([undefined]);
    expect((await create(api, 'c', [{ port: 80, nodePort: 30_080 }], without)).code).toBe(201);
    expect((await create(api, 'd', [{ port: 80, nodePort: 30_080 }])).code).toBe(422);
  });

  it('are never had by two Services, if many are created at once with the same one', async () => {
    const api = apiInMemory();
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) => create(api, `s${index}`, [{ port: 80, nodePort: 30_080 }])),
    );
    expect(answers.map(({ code }) => code).sort()).toEqual([201, ...Array(7).fill(422)]);
  });

  it('that a killed creation left behind can be used again after a minute, not before', async () => {
    let isKilled = true;
    const stored = memoryItemStore();
    const items: ItemStore = {
      ...stored,
      transact: async (writes, ...rest) => {
        if (isKilled && JSON.stringify(writes).includes('"Service"')) throw new Error('killed');
        return stored.transact(writes, ...rest);
      },
    };
    const api = apiInMemory({ items });
    expect((await create(api, 'a', [{ port: 80, nodePort: 30_080 }])).code).toBe(500);
    isKilled = false;
    expect((await create(api, 'b', [{ port: 80, nodePort: 30_080 }])).code).toBe(422);
    api.advance(60_000);
    expect((await create(api, 'b', [{ port: 80, nodePort: 30_080 }])).code).toBe(201);
  });
});
