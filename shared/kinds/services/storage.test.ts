import { describe, expect, it } from 'vitest';
import { apiInMemory, MERGE } from '../../../test/support/api-in-memory.ts';
import type { ItemStore } from '../../store/item-store.ts';
import { memoryItemStore } from '../../store/memory/item-store.ts';

const SERVICES = '/api/v1/namespaces/default/services';
const service = (name: string, more: object = {}) => ({
  body: { metadata: { name }, spec: { ports: [{ port: 80 }], ...more } },
});

/** A store that fails while `isDown` says so. */
function failing(isDown: (request: string) => boolean): ItemStore {
  const items = memoryItemStore();
  return {
    ...items,
    transact: async (writes, ...rest) => {
      if (isDown(JSON.stringify(writes))) throw new Error('killed');
      return items.transact(writes, ...rest);
    },
  };
}

describe('the address of a Service', () => {
  it('that a killed creation left behind can be used again after a minute, not before', async () => {
    let isKilled = true;
    const items = failing((writes) => isKilled && writes.includes('"Service"'));
    const api = apiInMemory({ items });
    const wanted = service('a', { clusterIP: '10.96.5.5' });
    expect((await api.send('POST', SERVICES, wanted)).code).toBe(500);
    isKilled = false;
    expect((await api.send('POST', SERVICES, wanted)).code).toBe(422);
    api.advance(60_000);
    expect((await api.send('POST', SERVICES, wanted)).code).toBe(201);
    api.advance(60_000);
    expect((await api.send('POST', SERVICES, service('b', { clusterIP: '10.96.5.5' }))).code).toBe(422);
  });

  it('is released when the Service becomes an alias, and assigned when it is none any more', async () => {
    const api = apiInMemory();
    const { body } = await api.send('POST', SERVICES, service('a'));
    const { clusterIP } = body.spec;
    const patch = (spec: object) => api.send('PATCH', `${SERVICES}/a`, { body: { spec }, contentType: MERGE });
    const alias = { type: 'ExternalName', externalName: 'example.com', clusterIP: null, clusterIPs: null };
    expect((await patch(alias)).body.spec.clusterIP).toBeUndefined();
    expect((await api.send('POST', SERVICES, service('b', { clusterIP }))).code).toBe(201);
    const again = await patch({ type: 'ClusterIP', externalName: null });
    expect(again.body.spec.clusterIP).toMatch(/^10\.96\./);
    expect(again.body.spec.clusterIP).not.toBe(clusterIP);
  });
});
