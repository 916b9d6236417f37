import { expect, it } from 'vitest';
import type { KubeObject, KubeResourceQuota } from '../../shared/kinds/types.ts';
import { chargedObjects } from './new-objects.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const quota = (name: string, hard: number, used: number): KubeResourceQuota =>
  ({
    metadata: { namespace: 'd', name, uid: name },
    spec: { hard: { 'count/configmaps': String(hard) } },
    status: { hard: { 'count/configmaps': String(hard) }, used: { 'count/configmaps': String(used) } },
  }) as unknown as KubeResourceQuota;
const objects = ['a', 'b', 'c'].map((name): KubeObject => ({ metadata: { namespace: 'd', name } }));

async function charged(quotas: readonly KubeResourceQuota[], resource = 'configmaps', of = objects) {
  const asked: string[] = [];
  const namespacePolicies = {
    quotas: async (namespace: string) => {
      asked.push(namespace);
      return quotas;
    },
  } as unknown as Parameters<typeof chargedObjects>[0]['namespacePolicies'];
  const {
    permitted,
    quotas: writes,
    refusal,
  } = await chargedObjects({ namespacePolicies }, { group: '', resource, namespace: 'd', nowMs: NOW_MS }, of);
  const used = writes.map((write) => [
    write.ref.name,
    write.kind === 'update' ? (write.object as KubeResourceQuota).status?.used?.['count/configmaps'] : undefined,
  ]);
  return { names: permitted.map(({ metadata }) => metadata.name), used, refusal, asked };
}

it('without quotas all objects are permitted', async () => {
  expect(await charged([])).toEqual({ names: ['a', 'b', 'c'], used: [], refusal: undefined, asked: ['d'] });
});

it('each object is charged to every quota that counts it, in one write per quota', async () => {
  const counted = await charged([quota('one', 9, 2), quota('two', 5, 0)]);
  expect(counted).toMatchObject({
    names: ['a', 'b', 'c'],
    used: [
      ['one', '5'],
      ['two', '3'],
    ],
    refusal: undefined,
  });
  expect(await charged([quota('one', 9, 2)], 'secrets')).toMatchObject({ names: ['a', 'b', 'c'], used: [] });
});

it('the first objects are permitted, as many as every quota allows', async () => {
  const { names, used, refusal } = await charged([quota('one', 9, 2), quota('two', 2, 0)]);
  expect([names, used]).toEqual([
    ['a', 'b'],
    [
      ['one', '4'],
      ['two', '2'],
    ],
  ]);
  expect(refusal).toMatch(/^configmaps "c" is forbidden: exceeded quota: two/);
  expect(await charged([quota('one', 2, 2)])).toMatchObject({ names: [], used: [] });
});

it('no objects need no read', async () => {
  expect(await charged([quota('one', 0, 0)], 'configmaps', [])).toEqual({
    names: [],
    used: [],
    refusal: undefined,
    asked: [],
  });
});
