import { expect, it } from 'vitest';
import { apiInMemory } from '../../../test/support/api-in-memory.ts';

it.each(['default', 'kube-node-lease', 'kube-public', 'kube-system'])('%s cannot be deleted', async (name) => {
  const api = apiInMemory();
  const { code, body } = await api.send('DELETE', `/api/v1/namespaces/${name}`);
  expect([code, body.message]).toEqual([403, `namespaces "${name}" is forbidden: this namespace may not be deleted`]);
  expect((await api.send('GET', `/api/v1/namespaces/${name}`)).body.status.phase).toBe('Active');
});

it('another namespace is marked, and deleted once nothing in its spec waits for that', async () => {
  const api = apiInMemory();
  const path = '/api/v1/namespaces/a';
  await api.send('POST', '/api/v1/namespaces', { body: { metadata: { name: 'a' } } });
  const marked = (await api.send('DELETE', path)).body;
  expect(marked).toMatchObject({ status: { phase: 'Terminating' }, spec: { finalizers: ['kubernetes'] } });
  expect(marked.metadata.deletionTimestamp).toBe('2026-01-01T00:00:00Z');
  const stored = (await api.send('GET', path)).body;
  expect(stored.status.phase).toBe('Terminating');
  await api.send('PUT', `${path}/finalize`, { body: { ...stored, spec: { finalizers: [] } } });
  expect((await api.send('GET', path)).code).toBe(404);
});
