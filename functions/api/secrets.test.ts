/** Where the data of a Secret is, and where it is not. */
import { expect, it } from 'vitest';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { unpackText } from '../../shared/store/object-record.ts';
import { apiInMemory } from '../../test/support/api-in-memory.ts';

const SECRETS = '/api/v1/namespaces/default/secrets';
const MERGE = 'application/merge-patch+json';
const base64 = (text: string) => Buffer.from(text).toString('base64');

it('data of a Secret is in no log or audit line, and after its deletion only in rows that expire', async () => {
  const items = memoryItemStore();
  const audited: unknown[] = [];
  const api = apiInMemory({
    items,
    auditTrail: { record: async (line) => void audited.push(line) },
  });
  const first = base64('correct horse');
  const second = base64('battery staple');
  expect((await api.send('POST', SECRETS, { body: { metadata: { name: 's' }, data: { k: first } } })).code).toBe(201);
  await api.send('PATCH', `${SECRETS}/s`, { body: { data: { k: second } }, contentType: MERGE });
  await api.send('PATCH', `${SECRETS}/s`, { body: { data: { k: 5 } }, contentType: MERGE });
  const readable = (_key: string, value: unknown) => (value instanceof Uint8Array ? unpackText(value) : value);
  const stored = (item: unknown) => [first, second].some((text) => JSON.stringify(item, readable).includes(text));
  expect(items.items('objects').filter(stored)).not.toEqual([]);
  await api.send('DELETE', `${SECRETS}/s`);
  expect(audited.length).toBeGreaterThanOrEqual(3);
  expect([...audited, ...api.faults].filter(stored)).toEqual([]);
  for (const table of ['objects', 'control', 'health'] as const) {
    expect(items.items(table).filter((item) => stored(item) && item['ttl'] === undefined)).toEqual([]);
  }
});

it.each([
  ['more than an object may have', 'x'.repeat(100_001), 'an object may take 100,000 characters'],
  ['a mebibyte', 'x'.repeat(1_048_576), /^Request entity too large: limit is \d+ bytes$/],
])('a Secret with %s is refused with 413 and the limit', async (_what, data, message) => {
  const api = apiInMemory();
  const { code, body } = await api.send('POST', SECRETS, { body: { metadata: { name: 's' }, stringData: { data } } });
  expect([code, body.reason]).toEqual([413, 'RequestEntityTooLarge']);
  expect(body.message).toMatch(message);
  expect((await api.send('GET', `${SECRETS}/s`)).code).toBe(404);
});
