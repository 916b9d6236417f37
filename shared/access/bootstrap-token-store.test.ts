import { expect, it } from 'vitest';
import { recordedReads } from '../../test/support/recorded-reads.ts';
import { memoryItemStore } from '../store/memory/item-store.ts';
import { bootstrapTokenStore, takeUseWrite } from './bootstrap-token-store.ts';

const TOKEN = {
  id: 'abcdef',
  uid: 'u1',
  createdAtMs: 1_000,
  secretSha256: 'hash',
  expiresAtMs: 9_001,
  uses: 2,
  usesLeft: 2,
  reissue: false,
};
const LIMITED = { ...TOKEN, id: 'limited', nodeNamePattern: 'edge-*', nodeLabels: { site: 'north' }, reissue: true };

it('a token is kept as it was made, once, until a week after it expired', async () => {
  const items = memoryItemStore();
  const tokens = bootstrapTokenStore(items);
  for (const token of [TOKEN, LIMITED]) {
    const stored = { ...token, version: 1_000_000 };
    expect(await tokens.create(token)).toEqual({ kind: 'created', token: stored });
    expect(await tokens.create({ ...token, uid: 'u2' })).toEqual({ kind: 'taken' });
    expect(await tokens.find(token.id)).toEqual(stored);
  }
  expect(items.items('control').map(({ sk, ttl }) => [sk, ttl])).toEqual([
    ['abcdef', 10 + 7 * 86_400],
    ['limited', 10 + 7 * 86_400],
  ]);
  expect(await tokens.find('other')).toBeUndefined();
});

it('a use is counted while one is left, the token is the same and has not expired', async () => {
  const items = memoryItemStore();
  const tokens = bootstrapTokenStore(items);
  const created = await tokens.create(TOKEN);
  if (created.kind !== 'created') throw new Error(created.kind);
  const { token } = created;
  const take = async (nowMs: number, uid = 'u1') => (await items.write(takeUseWrite({ ...token, uid }, nowMs))).kind;
  const left = async () => (await tokens.find('abcdef'))?.usesLeft;
  expect(await take(9_001)).toBe('refused');
  expect(await take(9_000, 'another')).toBe('refused');
  expect([await take(9_000), await left()]).toEqual(['written', 1]);
  expect([await take(1_000), await left()]).toEqual(['written', 0]);
  expect([await take(1_000), await left()]).toEqual(['refused', 0]);
  expect((await tokens.find('abcdef'))!.version).toBe(token.version + 2);
});

it('a token is revoked by a client that read it, whatever was used of it', async () => {
  const items = memoryItemStore();
  const tokens = bootstrapTokenStore(items);
  const created = await tokens.create(TOKEN);
  if (created.kind !== 'created') throw new Error(created.kind);
  await items.write(takeUseWrite(created.token, 1_000));
  expect(await tokens.remove('abcdef', { uid: 'u2' })).toBe('conflict');
  expect(await tokens.remove('abcdef', { uid: 'u1' })).toBe('removed');
  expect(await tokens.remove('abcdef', { uid: 'u1' })).toBe('conflict');
});

it('tokens are listed in pages, and all reads are strongly consistent', async () => {
  const { items, take } = recordedReads(memoryItemStore());
  const tokens = bootstrapTokenStore(items);
  for (const id of ['cccccc', 'aaaaaa', 'bbbbbb']) await tokens.create({ ...TOKEN, id });
  const first = await tokens.list({ limit: 2 });
  expect([first.tokens.map(({ id }) => id), first.next]).toEqual([['aaaaaa', 'bbbbbb'], 'bbbbbb']);
  const rest = await tokens.list({ limit: 2, continueAfter: 'bbbbbb' });
  expect(rest).toEqual({ tokens: [{ ...TOKEN, id: 'cccccc', version: 1_000_000 }] });
  await tokens.find('aaaaaa');
  expect(take()).toEqual(Array.from({ length: 3 }, () => 'bootstrap-tokens consistent'));
});
