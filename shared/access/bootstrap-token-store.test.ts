import { expect, it } from 'vitest';
import { memoryItemStore } from '../store/memory/item-store.ts';
import { bootstrapTokenStore, takeUseWrite } from './bootstrap-token-store.ts';

const TOKEN = {
  id: 'abcdef',
  uid: 'u1',
  createdAtMs: 1_000,
  secretSha256: 'hash',
  expiresAtMs: 9_000,
  uses: 2,
  usesLeft: 2,
} as const;

it('a use is counted while one is left, the token is the same and has not expired', async () => {
  const items = memoryItemStore();
  const tokens = bootstrapTokenStore(items);
  const created = await tokens.create(TOKEN as never);
  if (created.kind !== 'created') throw new Error(created.kind);
  const { token } = created;
  const take = async (nowMs: number, uid = 'u1') => (await items.write(takeUseWrite({ ...token, uid }, nowMs))).kind;
  const left = async () => (await tokens.find('abcdef'))?.usesLeft;
  expect(await take(9_000)).toBe('refused');
  expect(await take(8_999, 'another')).toBe('refused');
  expect([await take(8_999), await left()]).toEqual(['written', 1]);
  expect([await take(1_000), await left()]).toEqual(['written', 0]);
  expect([await take(1_000), await left()]).toEqual(['refused', 0]);
  expect((await tokens.find('abcdef'))!.version).toBe(token.version + 2);
});
