import { expect, it } from 'vitest';
import { apiInMemory } from '../../../test/support/api-in-memory.ts';

const HOUR_MS = 3_600_000;
const EVENTS = '/api/v1/namespaces/default/events';
const event = (reason: string) => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: 'n1.1', namespace: 'default' },
  involvedObject: { kind: 'Node', name: 'n1', uid: 'n1' },
  reason,
  type: 'Normal',
});

it('an event is not served after its hour, although the table still has it, and its name is free again', async () => {
  const api = apiInMemory();
  expect((await api.send('POST', EVENTS, { body: event('Starting') })).code).toBe(201);
  api.advance(HOUR_MS - 1_000);
  expect((await api.send('GET', `${EVENTS}/n1.1`)).code).toBe(200);
  expect((await api.send('POST', EVENTS, { body: event('Starting') })).code).toBe(409);
  api.advance(1_000);
  for (const [method, path] of [
    ['GET', `${EVENTS}/n1.1`],
    ['DELETE', `${EVENTS}/n1.1`],
    ['PUT', `${EVENTS}/n1.1`],
  ] as const) {
    const body =
      method === 'PUT' ? { ...event('Starting'), metadata: { name: 'n1.1', resourceVersion: '1' } } : undefined;
    const { code } = await api.send(method, path, body === undefined ? {} : { body });
    expect([method, code]).toEqual([method, 404]);
  }
  for (const path of [EVENTS, '/api/v1/events', '/apis/events.k8s.io/v1/events']) {
    expect((await api.send('GET', path)).body.items).toEqual([]);
  }
  expect((await api.send('GET', `${EVENTS}?watch=1&timeoutSeconds=1`)).text).toBe('');
  expect((await api.send('POST', EVENTS, { body: event('Stopped') })).code).toBe(201);
  const { items } = (await api.send('GET', EVENTS)).body;
  expect(items).toMatchObject([{ metadata: { name: 'n1.1' }, reason: 'Stopped' }]);
});
