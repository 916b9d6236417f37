import { describe, expect, it } from 'vitest';
import { configmaps } from '../../../shared/kinds/configmaps/serve.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { resourcequotas } from '../../../shared/kinds/quotas/serve.ts';
import { nodes } from '../../../shared/kinds/registry.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { chargedQuotas } from './charge-quotas.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const quota = (name: string, hard: Record<string, string>, used: Record<string, string>): KubeObject => ({
  metadata: { name, namespace: 'a', resourceVersion: '7' },
  spec: { hard },
  status: { hard, used },
});
const object = (name: string): KubeObject => ({ metadata: { name, namespace: 'a' } });

function charged(quotas: readonly KubeObject[], descriptor: ResourceDescriptor = configmaps, old?: KubeObject) {
  const asked: string[] = [];
  const namespacePolicies = {
    limitRanges: async () => [],
    quotas: async (namespace: string) => {
      asked.push(namespace);
      return quotas;
    },
  };
  const writes = chargedQuotas({ namespacePolicies } as never, descriptor, { object: object('c'), old, nowMs: NOW_MS });
  return { asked, writes };
}

describe('a new object', () => {
  it('is added to each quota that counts it, on the version that was read', async () => {
    const counting = quota('counting', { 'count/configmaps': '2', pods: '1' }, { 'count/configmaps': '1', pods: '0' });
    const other = quota('other', { pods: '1' }, { pods: '0' });
    const { asked, writes } = charged([counting, other]);
    expect(await writes).toEqual([
      {
        kind: 'update',
        ref: { resource: resourcequotas.resource, namespace: 'a', name: 'counting' },
        object: expect.objectContaining({
          status: expect.objectContaining({ used: { 'count/configmaps': '2', pods: '0' } }),
        }),
        previous: counting,
      },
    ]);
    expect(asked).toEqual(['a']);
  });

  it('is refused by a quota that is used up', async () => {
    const full = quota('full', { 'count/configmaps': '1' }, { 'count/configmaps': '1' });
    await expect(charged([full]).writes).rejects.toMatchObject({
      status: {
        code: 403,
        message:
          'configmaps "c" is forbidden: exceeded quota: full, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1',
      },
    });
  });
});

it('what no quota counts reads none: an update of most kinds, an object of the cluster', async () => {
  for (const { asked, writes } of [charged([], configmaps, object('c')), charged([], nodes)]) {
    expect(await writes).toEqual([]);
    expect(asked).toEqual([]);
  }
});
