import { describe, expect, it } from 'vitest';
import { apiInMemory } from '../../test/support/api-in-memory.ts';

const users = { machine: { name: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] } };
const node = (name: string, podCIDRs: string[]) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name },
  spec: { podCIDR: podCIDRs[0], podCIDRs },
});
const by = (user: string) => ({ headers: { authorization: `Bearer ${user}` } });

describe('a machine that says which pod CIDR it has', () => {
  const policy = { clusterCIDRs: ['10.244.0.0/16'] };

  it.each([
    ['10.244.0.0/16', "pod CIDR 10.244.0.0/16 is larger than a node's block, which has prefix length 24"],
    ['0.0.0.0/0', "pod CIDR 0.0.0.0/0 is larger than a node's block, which has prefix length 24"],
    ['10.244.4.0/23', "pod CIDR 10.244.4.0/23 is larger than a node's block, which has prefix length 24"],
    ['192.168.0.0/24', 'pod CIDR 192.168.0.0/24 is not in cluster CIDR 10.244.0.0/16'],
  ])('is refused %s', async (cidr, message) => {
    const api = apiInMemory({ users, policy });
    const answer = await api.send('POST', '/api/v1/nodes', { body: node('n1', [cidr]), ...by('machine') });
    expect([answer.code, answer.body.message]).toEqual([403, `nodes "n1" is forbidden: ${message}`]);
  });

  it('is refused a wide one by a patch as well', async () => {
    const api = apiInMemory({ users, policy });
    expect((await api.send('POST', '/api/v1/nodes', { body: node('n1', []), ...by('machine') })).code).toBe(201);
    const patch = { contentType: 'application/merge-patch+json', body: { spec: { podCIDRs: ['10.244.0.0/16'] } } };
    expect((await api.send('PATCH', '/api/v1/nodes/n1', { ...patch, ...by('machine') })).code).toBe(403);
  });

  it('may have one block, or any while nothing is allocated here; a person may set a wide one', async () => {
    const one = apiInMemory({ users, policy });
    const create = (api: typeof one, cidr: string, as: object) =>
      api.send('POST', '/api/v1/nodes', { body: node('n1', [cidr]), ...as });
    expect((await create(one, '10.244.7.0/24', by('machine'))).code).toBe(201);
    expect((await create(apiInMemory({ users }), '10.0.0.0/8', by('machine'))).code).toBe(201);
    expect((await create(apiInMemory({ users, policy }), '10.244.0.0/16', {})).code).toBe(201);
  });

  it('keeps one that a person has set', async () => {
    const api = apiInMemory({ users, policy });
    await api.send('POST', '/api/v1/nodes', { body: node('n1', ['10.244.0.0/16']) });
    const patch = { contentType: 'application/merge-patch+json', body: { metadata: { labels: { team: 'a' } } } };
    expect((await api.send('PATCH', '/api/v1/nodes/n1', { ...patch, ...by('machine') })).code).toBe(200);
  });
});
