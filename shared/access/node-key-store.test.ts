import { describe, expect, it } from 'vitest';
import { recordedReads } from '../../test/support/recorded-reads.ts';
import { type ItemStore, StoreFault, type TransactWrite } from '../store/item-store.ts';
import { memoryItemStore } from '../store/memory/item-store.ts';
import { claimInstanceWrite, hasNodeKeys, type NodeIdentity, nodeKeyStore } from './node-key-store.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const KEY = { keyId: 'k', publicKey: { kty: 'OKP', crv: 'Ed25519', x: 'x' }, addedAtMs: NOW_MS } as const;
const IDENTITY = { nodeName: 'n1', uid: 'u1', createdAtMs: NOW_MS, keys: [KEY], source: 'user/admin' };
const AT = { nowMs: NOW_MS, along: [], pause: async () => {} };
/** Refused: the item is not there. */
const REFUSED: TransactWrite = {
  kind: 'check',
  key: { table: 'control', pk: 'absent', sk: 'absent' },
  when: { kind: 'itemExists' },
};

it('an enrolment reports that the name is in use, also when the write beside it is refused too', async () => {
  const store = nodeKeyStore(memoryItemStore());
  const enrol = (along: TransactWrite[]) => store.enrol(IDENTITY, { ...AT, along });
  expect(await enrol([REFUSED])).toEqual({ kind: 'alongRefused' });
  expect((await enrol([])).kind).toBe('enrolled');
  expect(await enrol([])).toEqual({ kind: 'taken' });
  expect(await enrol([REFUSED])).toEqual({ kind: 'taken' });
});

describe('an enrolment that conflicts with other transactions', () => {
  function contended(times: number) {
    const items = memoryItemStore();
    let attempts = 0;
    const transact: ItemStore['transact'] = async (writes) => {
      attempts += 1;
      return attempts <= times ? { kind: 'contended' } : items.transact(writes);
    };
    const pauses: number[] = [];
    const pause = async (attempt: number) => void pauses.push(attempt);
    const enrol = () => nodeKeyStore({ ...items, transact }).enrol(IDENTITY, { ...AT, pause });
    return { enrol, pauses, attempts: () => attempts };
  }

  it('is repeated, each time after a pause', async () => {
    const { enrol, pauses } = contended(7);
    expect(await enrol()).toEqual({ kind: 'enrolled', identity: { ...IDENTITY, version: NOW_MS * 1_000 } });
    expect(pauses).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  it('fails after eight attempts, and may be sent again', async () => {
    const { enrol, pauses, attempts } = contended(8);
    const fault = await enrol().catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(StoreFault);
    expect(fault).toMatchObject({ code: 'throttled', retryable: true });
    expect([attempts(), pauses.length]).toEqual([8, 7]);
  });
});

describe('an identity', () => {
  const enrolled = async () => {
    const store = nodeKeyStore(memoryItemStore());
    await store.enrol({ ...IDENTITY, labels: { site: 'north' } }, AT);
    return { store, before: (await store.read('n1')) as NodeIdentity };
  };

  it('is read as it was written, with labels or without', async () => {
    const { store, before } = await enrolled();
    expect(before).toEqual({ ...IDENTITY, labels: { site: 'north' }, version: NOW_MS * 1_000 });
    await store.enrol({ ...IDENTITY, nodeName: 'n2' }, AT);
    expect(await store.read('n2')).toEqual({ ...IDENTITY, nodeName: 'n2', version: NOW_MS * 1_000 });
    expect(await store.keysOf('n1', { consistent: true })).toEqual([KEY]);
    expect(await store.keysOf('n3', { consistent: true })).toEqual([]);
  });

  it('keeps everything but its keys in a rotation, and has a higher version after it, whatever the clock says', async () => {
    const { store, before } = await enrolled();
    const keys = [{ ...KEY, keyId: 'next' }];
    const back = await store.replaceKeys(before, keys, NOW_MS - 60_000);
    const expected = { ...before, keys, version: before.version + 1 };
    expect(back).toEqual({ kind: 'written', identity: expected });
    expect(await store.read('n1')).toEqual(expected);
    expect(await store.replaceKeys(before, [KEY], NOW_MS + 60_000)).toEqual({ kind: 'conflict' });
    expect(await store.replaceKeys(expected, [KEY], NOW_MS + 60_000)).toMatchObject({
      identity: { version: (NOW_MS + 60_000) * 1_000 },
    });
  });

  it('is replaced only for a client that read it, and has a higher version after that too', async () => {
    const { store, before } = await enrolled();
    const other = { ...IDENTITY, uid: 'u2' };
    const replaced = await store.enrol(other, { ...AT, replaces: before });
    expect(replaced).toEqual({ kind: 'enrolled', identity: { ...other, version: before.version + 1 } });
    expect(await store.enrol(other, { ...AT, replaces: before })).toEqual({ kind: 'taken' });
    expect(await store.remove('n1', before)).toBe('conflict');
    expect(await store.remove('n1', { version: before.version + 1 })).toBe('removed');
    expect(await store.read('n1')).toBeUndefined();
  });

  it('of an instance is made once, and that is remembered', async () => {
    const items = memoryItemStore();
    const store = nodeKeyStore(items);
    const along = [claimInstanceWrite('i-1', 'n1', NOW_MS)];
    expect(await store.hasEnrolled('i-1')).toBe(false);
    await store.enrol(IDENTITY, { ...AT, along });
    expect([await store.hasEnrolled('i-1'), await store.hasEnrolled('i-2')]).toEqual([true, false]);
    expect(await store.enrol({ ...IDENTITY, nodeName: 'n2' }, { ...AT, along })).toEqual({ kind: 'alongRefused' });
    expect(items.items('control').find(({ sk }) => sk === 'i-1')).toMatchObject({ name: 'n1', atMs: NOW_MS });
  });
});

it('identities of all shards are listed in pages, by name', async () => {
  const store = nodeKeyStore(memoryItemStore());
  const names = Array.from({ length: 40 }, (_, index) => `n${String(index).padStart(2, '0')}`);
  for (const nodeName of names.toReversed()) await store.enrol({ ...IDENTITY, nodeName }, AT);
  const first = await store.list({ limit: 25 });
  expect(first.identities.map(({ nodeName }) => nodeName)).toEqual(names.slice(0, 25));
  expect(first.next).toBe('n24');
  const rest = await store.list({ limit: 25, continueAfter: 'n24' });
  expect(rest.identities.map(({ nodeName }) => nodeName)).toEqual(names.slice(25));
  expect(rest).not.toHaveProperty('next');
});

it('who may enrol is decided by strongly consistent reads; a sign-in chooses', async () => {
  const { items, take } = recordedReads(memoryItemStore());
  const store = nodeKeyStore(items);
  await store.read('n1');
  await store.hasEnrolled('i-1');
  const [ofNode = '', ofInstance] = take();
  expect(ofNode).toMatch(/^node-keys#\d\d consistent$/);
  expect(hasNodeKeys(ofNode)).toBe(true);
  expect(ofInstance).toBe('node-instances consistent');
  expect(hasNodeKeys('node-instances')).toBe(false);
  await store.list({ limit: 1 });
  expect(take().filter((read) => read.endsWith('eventual'))).toEqual([]);
  for (const consistent of [true, false]) await store.keysOf('n1', { consistent });
  expect(take()).toEqual([ofNode, ofNode.replace('consistent', 'eventual')]);
});
