import { expect, it } from 'vitest';
import { bootstrapTokenStore, takeUseWrite } from '../../shared/access/bootstrap-token-store.ts';
import { claimInstanceWrite, nodeKeyStore } from '../../shared/access/node-key-store.ts';
import { describeOnStores } from './stores.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const key = (keyId: string) => ({
  keyId,
  publicKey: { kty: 'OKP' as const, crv: 'Ed25519' as const, x: 'x'.repeat(43) },
  addedAtMs: NOW_MS,
});
const identity = (nodeName: string, more: object = {}) => ({
  nodeName,
  uid: `uid-${nodeName}`,
  createdAtMs: NOW_MS,
  keys: [key('a')],
  source: 'user/admin',
  ...more,
});
const noPause = async () => {};
const alone = { nowMs: NOW_MS, along: [], pause: noPause };

describeOnStores('node identities', ({ items, consumed }) => {
  const identities = () => nodeKeyStore(items());
  const tokens = () => bootstrapTokenStore(items());
  const token = (id: string, uses: number, more: object = {}) => ({
    id,
    uid: `uid-${id}`,
    createdAtMs: NOW_MS,
    secretSha256: '0'.repeat(64),
    expiresAtMs: NOW_MS + 60_000,
    uses,
    usesLeft: uses,
    reissue: false,
    ...more,
  });

  it('store what was written, and return their keys by one read of half a unit', async () => {
    const labelled = identity('kept', { labels: { site: 'north' } });
    await identities().enrol(labelled, alone);
    expect(await identities().read('kept')).toEqual({ ...labelled, version: NOW_MS * 1_000 });
    consumed();
    expect(await identities().keysOf('kept', { consistent: false })).toEqual([key('a')]);
    expect(consumed()).toMatchObject([{ table: 'control', operation: 'GetItem', readUnits: 0.5 }]);
    expect(await identities().keysOf('nobody', { consistent: true })).toEqual([]);
  });

  it('hold a name once, and release it only to a client that saw the holder', async () => {
    const first = await identities().enrol(identity('once'), alone);
    if (first.kind !== 'enrolled') throw new Error(first.kind);
    expect(await identities().enrol(identity('once', { uid: 'other' }), alone)).toEqual({ kind: 'taken' });
    const replaced = await identities().enrol(identity('once', { uid: 'other' }), {
      ...alone,
      replaces: first.identity,
    });
    expect(replaced).toMatchObject({ kind: 'enrolled', identity: { uid: 'other', version: NOW_MS * 1_000 + 1 } });
    expect(await identities().enrol(identity('once'), { ...alone, replaces: first.identity })).toEqual({
      kind: 'taken',
    });
  });

  it('change keys and go away by the version that was read', async () => {
    await identities().enrol(identity('rotated'), alone);
    const before = (await identities().read('rotated'))!;
    expect((await identities().replaceKeys(before, [key('a'), key('b')], NOW_MS)).kind).toBe('written');
    expect((await identities().replaceKeys(before, [key('c')], NOW_MS)).kind).toBe('conflict');
    expect(await identities().remove('rotated', before)).toBe('conflict');
    const now = (await identities().read('rotated'))!;
    expect(now.keys.map(({ keyId }) => keyId)).toEqual(['a', 'b']);
    expect(await identities().remove('rotated', now)).toBe('removed');
    expect(await identities().read('rotated')).toBeUndefined();
    expect(await identities().remove('rotated', now)).toBe('conflict');
  });

  it('list in order of names, page by page', async () => {
    for (let index = 0; index < 12; index += 1) {
      await identities().enrol(identity(`page-${String(index).padStart(2, '0')}`), alone);
    }
    const names: string[] = [];
    let continueAfter = 'page';
    for (let page = 0; page < 10; page += 1) {
      const { identities: found, next } = await identities().list({ limit: 5, continueAfter });
      names.push(...found.map(({ nodeName }) => nodeName));
      if (next === undefined) break;
      continueAfter = next;
    }
    const ours = names.filter((name) => name.startsWith('page-'));
    expect(ours).toEqual([...ours].sort());
    expect(ours).toHaveLength(12);
  });

  it.each([
    [1, 8],
    [3, 12],
    [8, 8],
  ])('are %i of a bootstrap token with as many uses, when %i ask at once', async (uses, asking) => {
    const id = `race${uses}x${asking}`;
    const created = await tokens().create(token(id, uses));
    if (created.kind !== 'created') throw new Error(created.kind);
    const outcomes = await Promise.all(
      Array.from({ length: asking }, (_, index) =>
        identities().enrol(identity(`${id}-${index}`), {
          ...alone,
          along: [takeUseWrite(created.token, NOW_MS)],
          pause: (attempt) => new Promise((resolve) => setTimeout(resolve, attempt * 5 * (1 + index / asking))),
        }),
      ),
    );
    expect(outcomes.filter(({ kind }) => kind === 'enrolled')).toHaveLength(uses);
    expect(outcomes.filter(({ kind }) => kind === 'alongRefused')).toHaveLength(asking - uses);
    const kept = await Promise.all(Array.from({ length: asking }, (_, index) => identities().read(`${id}-${index}`)));
    expect(kept.filter((each) => each !== undefined)).toHaveLength(uses);
    expect((await tokens().find(id))?.usesLeft).toBe(0);
  });

  it('count no use of a token when the name is in use', async () => {
    const created = await tokens().create(token('untouched', 2));
    if (created.kind !== 'created') throw new Error(created.kind);
    const along = [takeUseWrite(created.token, NOW_MS)];
    expect((await identities().enrol(identity('twice'), { ...alone, along })).kind).toBe('enrolled');
    expect(await identities().enrol(identity('twice'), { ...alone, along })).toEqual({ kind: 'taken' });
    expect((await tokens().find('untouched'))?.usesLeft).toBe(1);
  });

  it('are not made with a token that expired or was revoked in between', async () => {
    const created = await tokens().create(token('late', 2));
    if (created.kind !== 'created') throw new Error(created.kind);
    const expired = [takeUseWrite(created.token, NOW_MS + 60_000)];
    expect((await identities().enrol(identity('late'), { ...alone, along: expired })).kind).toBe('alongRefused');
    expect(await tokens().remove('late', { uid: 'another' })).toBe('conflict');
    expect(await tokens().remove('late', created.token)).toBe('removed');
    const revoked = [takeUseWrite(created.token, NOW_MS)];
    expect((await identities().enrol(identity('late'), { ...alone, along: revoked })).kind).toBe('alongRefused');
    expect(await identities().read('late')).toBeUndefined();
    expect(await tokens().find('late')).toBeUndefined();
  });

  it('are made by an instance once', async () => {
    const along = [claimInstanceWrite('i-0abc', 'ec2-1', NOW_MS)];
    expect((await identities().enrol(identity('ec2-1'), { ...alone, along })).kind).toBe('enrolled');
    const again = [claimInstanceWrite('i-0abc', 'ec2-2', NOW_MS)];
    expect((await identities().enrol(identity('ec2-2'), { ...alone, along: again })).kind).toBe('alongRefused');
  });

  it('and tokens are kept as they were made, with an end for cleaning up', async () => {
    const full = token('full00', 3, { nodeNamePattern: 'edge-*', nodeLabels: { site: 'north' }, reissue: true });
    const created = await tokens().create(full);
    expect(created).toEqual({ kind: 'created', token: { ...full, version: NOW_MS * 1_000 } });
    expect(await tokens().create(full)).toEqual({ kind: 'taken' });
    expect(await tokens().find('full00')).toEqual({ ...full, version: NOW_MS * 1_000 });
    const { tokens: listed } = await tokens().list({ limit: 100 });
    expect(listed.map(({ id }) => id)).toContain('full00');
    const item = await items().get({ table: 'control', pk: 'bootstrap-tokens', sk: 'full00' }, { consistent: true });
    expect(item?.['ttl']).toBe((NOW_MS + 60_000) / 1_000 + 604_800);
  });
});
