import { expect, it } from 'vitest';
import { PROBE_KEYS_MAX, type ProcessKey } from '../../shared/access/process-key.ts';
import {
  accountKeys,
  keepAccountKey,
  keepProbeKey,
  keepTicketKey,
  probeKeys,
  ticketKeys,
} from '../../shared/access/process-key-store.ts';
import { describeOnStores } from './stores.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const DAY_SECONDS = 86_400;
const key = (keyId: string, throughMs = NOW_MS + DAY_SECONDS * 1_000): ProcessKey => ({
  keyId: keyId.padEnd(43, '-'),
  publicKey: { kty: 'OKP', crv: 'Ed25519', x: 'x'.repeat(43) },
  throughMs,
});

describeOnStores('the keys of our own processes', ({ items, consumed }) => {
  const ofProbes = () => probeKeys(items()).probeKeys({ consistent: true });
  const empty = () => items().write({ kind: 'delete', key: { table: 'control', pk: 'probe-keys', sk: '-' } });

  it('are none at first', async () => {
    await empty();
    expect(await ofProbes()).toEqual([]);
    expect(await ticketKeys(items()).find(key('nobody').keyId)).toBeUndefined();
  });

  it('of probes are kept side by side, each once', async () => {
    await empty();
    const keep = keepProbeKey(items());
    for (const id of ['first', 'second', 'first']) await keep(key(id), NOW_MS);
    expect(await ofProbes()).toEqual([key('second'), key('first')]);
    const item = await items().get({ table: 'control', pk: 'probe-keys', sk: '-' }, { consistent: true });
    expect(item?.['ttl']).toBe(NOW_MS / 1_000 + 2 * DAY_SECONDS);
  });

  it('of probes are removed when they have expired, or beyond the bound, and cost one read unit at most', async () => {
    await empty();
    const keep = keepProbeKey(items());
    await keep(key('ended', NOW_MS), NOW_MS);
    for (let index = 0; index < PROBE_KEYS_MAX + 2; index += 1) {
      await keep(key(`k${index}`, NOW_MS + DAY_SECONDS * 1_000 + index), NOW_MS + 1);
    }
    consumed();
    const kept = (await ofProbes()).map(({ keyId }) => keyId);
    expect(consumed()).toMatchObject([{ table: 'control', operation: 'GetItem', readUnits: 1 }]);
    expect(kept).toHaveLength(PROBE_KEYS_MAX);
    for (const id of ['ended', 'k0', 'k1']) expect(kept).not.toContain(key(id).keyId);
  });

  it('of probes all count when two processes store theirs at once', async () => {
    await empty();
    await Promise.all(['one', 'another'].map((id) => keepProbeKey(items())(key(id), NOW_MS)));
    expect((await ofProbes()).map(({ keyId }) => keyId).sort()).toEqual([key('another').keyId, key('one').keyId]);
  });

  it('of tickets are one write and found by their id', async () => {
    consumed();
    await keepTicketKey(items())(key('ticket'), NOW_MS);
    expect(consumed()).toMatchObject([{ table: 'control', operation: 'PutItem', writeUnits: 1 }]);
    expect(await ticketKeys(items()).find(key('ticket').keyId)).toEqual(key('ticket'));
    const at = { table: 'control', pk: 'ticket-keys', sk: key('ticket').keyId } as const;
    expect((await items().get(at, { consistent: true }))?.['ttl']).toBe(NOW_MS / 1_000 + 2 * DAY_SECONDS);
  });

  it('of service accounts are one write each, found by their id, and listed', async () => {
    consumed();
    await keepAccountKey(items())(key('account'), NOW_MS);
    expect(consumed()).toMatchObject([{ table: 'control', operation: 'PutItem', writeUnits: 1 }]);
    await keepAccountKey(items())(key('bccount'), NOW_MS);
    const keys = accountKeys(items());
    expect(await keys.find(key('account').keyId)).toEqual(key('account'));
    expect(await keys.find(key('ticket').keyId)).toBeUndefined();
    expect(await keys.all()).toEqual([key('account'), key('bccount')]);
  });
});
