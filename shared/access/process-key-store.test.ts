import { describe, expect, it } from 'vitest';
import { recordedReads } from '../../test/support/recorded-reads.ts';
import { type ItemStore, StoreFault } from '../store/item-store.ts';
import { memoryItemStore } from '../store/memory/item-store.ts';
import type { ProcessKey } from './process-key.ts';
import {
  accountKeys,
  keepAccountKey,
  keepProbeKey,
  keepTicketKey,
  probeKeys,
  ticketKeys,
} from './process-key-store.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const DAY_MS = 86_400_000;
const key = (keyId: string, throughMs = NOW_MS + DAY_MS): ProcessKey => ({
  keyId,
  publicKey: { kty: 'OKP', crv: 'Ed25519', x: 'x'.repeat(43) },
  throughMs,
});
const idsOf = (keys: readonly ProcessKey[]) => keys.map(({ keyId }) => keyId);

describe('the keys of probes', () => {
  it('are added to those that another process stored meanwhile', async () => {
    const items = memoryItemStore();
    let reads = 0;
    const racing: ItemStore = {
      ...items,
      async get(at, options) {
        const read = await items.get(at, options);
        reads += 1;
        if (reads <= 3) await keepProbeKey(items)(key(`other-${reads}`), NOW_MS);
        return read;
      },
    };
    await keepProbeKey(racing)(key('made'), NOW_MS);
    expect(reads).toBe(4);
    const kept = idsOf(await probeKeys(items).probeKeys({ consistent: true }));
    expect(kept.toSorted()).toEqual(['made', 'other-1', 'other-2', 'other-3']);
  });

  it('that keep changing are a fault after four attempts, which may be repeated', async () => {
    const items = memoryItemStore();
    let writes = 0;
    const write: ItemStore['write'] = async () => {
      writes += 1;
      return { kind: 'refused' };
    };
    const fault = await keepProbeKey({ ...items, write })(key('made'), NOW_MS).catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(StoreFault);
    expect(fault).toMatchObject({ code: 'throttled', retryable: true });
    expect(writes).toBe(4);
  });

  it('are not written again when they are there: the response of an earlier write was lost', async () => {
    const items = memoryItemStore();
    await keepProbeKey(items)(key('made'), NOW_MS);
    const [before] = items.items('control');
    await keepProbeKey(items)(key('made'), NOW_MS);
    expect(items.items('control')).toEqual([before]);
    expect(before).toMatchObject({ v: 1 });
    await keepProbeKey(items)(key('other'), NOW_MS);
    expect(items.items('control')).toMatchObject([{ v: 2 }]);
  });

  it('are kept until a day after the last of them ended', async () => {
    const items = memoryItemStore();
    await keepProbeKey(items)(key('long', NOW_MS + 2 * DAY_MS + 1), NOW_MS);
    await keepProbeKey(items)(key('short'), NOW_MS);
    expect(items.items('control')).toMatchObject([{ ttl: (NOW_MS + 3 * DAY_MS) / 1_000 + 1 }]);
  });
});

describe('the keys of tickets and of service accounts', () => {
  it('are items of their own, until a day after they ended, in partitions of their own', async () => {
    const items = memoryItemStore();
    await keepTicketKey(items)(key('ticket'), NOW_MS);
    await keepAccountKey(items)(key('account', NOW_MS + 1), NOW_MS);
    expect(await ticketKeys(items).find('ticket')).toEqual(key('ticket'));
    expect(await ticketKeys(items).find('account')).toBeUndefined();
    const keys = accountKeys(items);
    expect(await keys.find('account')).toEqual(key('account', NOW_MS + 1));
    expect(await keys.find('ticket')).toBeUndefined();
    expect(items.items('control').map(({ pk, ttl }) => [pk, ttl])).toEqual([
      ['account-keys', (NOW_MS + DAY_MS) / 1_000 + 1],
      ['ticket-keys', (NOW_MS + 2 * DAY_MS) / 1_000],
    ]);
  });

  it('of all service accounts are read in pages, four at most', async () => {
    const pages: (string | undefined)[] = [];
    const endless: Pick<ItemStore, 'get' | 'query'> = {
      ...memoryItemStore(),
      async query({ pk, after }) {
        pages.push(after);
        const sk = `k${pages.length}`;
        const { publicKey, throughMs } = key(sk);
        return { items: [{ pk, sk, publicKey: JSON.stringify(publicKey), throughMs }], next: sk };
      },
    };
    expect(await accountKeys(endless).all()).toEqual(['k1', 'k2', 'k3', 'k4'].map((id) => key(id)));
    expect(pages).toEqual([undefined, 'k1', 'k2', 'k3']);
  });

  it('of all service accounts are those of the only page', async () => {
    const items = memoryItemStore();
    for (const id of ['b', 'a']) await keepAccountKey(items)(key(id), NOW_MS);
    expect(idsOf(await accountKeys(items).all())).toEqual(['a', 'b']);
  });
});

it('a key is looked up by a strongly consistent read; only the list of all may be older', async () => {
  const { items, take } = recordedReads(memoryItemStore());
  await ticketKeys(items).find('k');
  await accountKeys(items).find('k');
  await keepProbeKey(items)(key('k'), NOW_MS);
  await accountKeys(items).all();
  for (const consistent of [true, false]) await probeKeys(items).probeKeys({ consistent });
  expect(take()).toEqual([
    'ticket-keys consistent',
    'account-keys consistent',
    'probe-keys consistent',
    'account-keys eventual',
    'probe-keys consistent',
    'probe-keys eventual',
  ]);
});
