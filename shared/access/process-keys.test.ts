import { verify } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type { ProcessKey } from './process-key.ts';
import { type ProcessKeys, processKeys } from './process-keys.ts';
import { keyObjectOf, thumbprintOf } from './public-keys.ts';

const START_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;

let kept: ProcessKey[];
let broken: boolean;
let warned: unknown[];
let keys: ProcessKeys;

beforeEach(() => {
  kept = [];
  broken = false;
  warned = [];
  const keep = async (key: ProcessKey) => {
    if (broken) throw new Error('the table does not exist');
    kept.push(key);
  };
  keys = processKeys(keep, { warn: (message, fields) => warned.push([message, fields]) });
});

describe('the key of a process', () => {
  it('is created at its first use; its public half is stored before a signature', async () => {
    expect(kept).toEqual([]);
    const key = await keys.current(START_MS);
    expect(kept).toEqual([{ keyId: key.keyId, publicKey: kept[0]!.publicKey, throughMs: START_MS + 24 * HOUR_MS }]);
    expect(key.keyId).toBe(thumbprintOf(kept[0]!.publicKey));
    const signature = Buffer.from(key.sign('text'), 'base64url');
    expect(verify(null, Buffer.from('text'), keyObjectOf(kept[0]!.publicKey), signature)).toBe(true);
  });

  it('is stored without its private half', async () => {
    await keys.current(START_MS);
    expect(Object.keys(kept[0]!.publicKey).sort()).toEqual(['crv', 'kty', 'x']);
  });

  it('is the same for concurrent and later callers', async () => {
    const asked = await Promise.all([keys.current(START_MS), keys.current(START_MS)]);
    asked.push(await keys.current(START_MS + 12 * HOUR_MS));
    expect(new Set(asked.map(({ keyId }) => keyId)).size).toBe(1);
    expect(kept).toHaveLength(1);
  });

  it('is replaced half a day before it expires', async () => {
    const first = await keys.current(START_MS);
    const second = await keys.current(START_MS + 12 * HOUR_MS + 1);
    expect(second.keyId).not.toBe(first.keyId);
    expect(kept).toHaveLength(2);
  });

  it('stays in use while the next key cannot be stored, with a retry and a warning per minute, until it expires', async () => {
    const first = await keys.current(START_MS);
    broken = true;
    const later = START_MS + 12 * HOUR_MS + 1;
    expect(await keys.current(later)).toBe(first);
    broken = false;
    expect(await keys.current(later + 59_999)).toBe(first);
    const failure = { error: new Error('the table does not exist'), endsAtMs: first.throughMs };
    expect(warned).toEqual([['the next key of this process could not be stored', failure]]);
    expect(await keys.current(later + 60_000)).not.toBe(first);
    broken = true;
    await expect(keys.current(later + 24 * HOUR_MS)).rejects.toThrow('the table does not exist');
  });

  it('is created again if it could not be stored', async () => {
    broken = true;
    await expect(keys.current(START_MS)).rejects.toThrow('the table does not exist');
    broken = false;
    expect((await keys.current(START_MS + 1)).keyId).toBe(kept[0]!.keyId);
  });

  it('is replaced once, however often the same key is forgotten', async () => {
    const first = await keys.current(START_MS);
    keys.forget(first);
    const second = await keys.current(START_MS + 1);
    expect(second).not.toBe(first);
    keys.forget(first);
    expect(await keys.current(START_MS + 2)).toBe(second);
  });
});

it('keys for the programs of others are of P-256, and are kept as long as their signatures are accepted', async () => {
  const stored: ProcessKey[] = [];
  const made = processKeys(async (each) => void stored.push(each), undefined, {
    algorithm: 'ES256',
    trailSeconds: 3_600,
  });
  const key = await made.current(START_MS);
  expect(stored).toMatchObject([
    { keyId: key.keyId, publicKey: { kty: 'EC', crv: 'P-256' }, throughMs: START_MS + 25 * HOUR_MS },
  ]);
  expect(key.throughMs).toBe(START_MS + 24 * HOUR_MS);
  const signature = Buffer.from(key.sign('tëxt'), 'base64url');
  const publicKey = { key: keyObjectOf(stored[0]!.publicKey), dsaEncoding: 'ieee-p1363' } as const;
  expect(signature).toHaveLength(64);
  expect(verify('sha256', Buffer.from('tëxt'), publicKey, signature)).toBe(true);
});

it('a key that is about to end is not used, although the next one cannot be stored', async () => {
  await keys.current(START_MS);
  broken = true;
  const lastMs = START_MS + 24 * HOUR_MS - 600_000;
  expect((await keys.current(lastMs)).keyId).toBe(kept[0]!.keyId);
  await expect(keys.current(lastMs + 1)).rejects.toThrow('the table does not exist');
  expect(warned).toHaveLength(1);
});
