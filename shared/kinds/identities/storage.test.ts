/** What the API stores of identities and bootstrap tokens, and what it answers when they no longer exist. */
import { describe, expect, it } from 'vitest';
import { bootstrapTokenStore } from '../../access/bootstrap-token-store.ts';
import { nodeKeyStore } from '../../access/node-key-store.ts';
import { memoryItemStore } from '../../store/memory/item-store.ts';
import type { KubeBootstrapToken } from '../types.ts';
import { bootstrapTokenStorage, identityStorage } from './storage.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const clock = { nowMs: () => NOW_MS };
const shownMetadata = (name: string) => ({
  name,
  uid: `uid-${name}`,
  resourceVersion: String(NOW_MS * 1_000),
  creationTimestamp: '2026-01-01T00:00:00Z',
});

describe('bootstrap tokens', () => {
  const storageOf = () => {
    const tokens = bootstrapTokenStore(memoryItemStore());
    return { tokens, storage: bootstrapTokenStorage(tokens, clock) };
  };
  const token = (name: string, spec: NonNullable<KubeBootstrapToken['spec']> = {}): KubeBootstrapToken => ({
    metadata: { name, uid: `uid-${name}` },
    spec: { secretSha256: 'hash', expires: '2026-01-01T01:00:00Z', ...spec },
  });
  const shown = (name: string, more: object = {}) => ({
    apiVersion: 'nodekeeper.dev/v1alpha1',
    kind: 'BootstrapToken',
    metadata: shownMetadata(name),
    spec: { expires: '2026-01-01T01:00:00Z', uses: 1, ...more },
    status: { usesLeft: 1 },
  });

  it('are shown as they were made, without their secrets, alone and in pages', async () => {
    const { storage } = storageOf();
    const limits = { nodeNamePattern: 'edge-*', nodeLabels: { site: 'north' }, reissue: true };
    expect(await storage.create(token('a', limits))).toEqual({ kind: 'written', object: shown('a', limits) });
    expect(await storage.create(token('b'))).toEqual({ kind: 'written', object: shown('b') });
    expect(await storage.get('', 'a')).toEqual(shown('a', limits));
    expect(await storage.get('', 'c')).toBeUndefined();
    const first = await storage.list({ namespace: '', limit: 1 });
    expect(first).toEqual({ items: [shown('a', limits)], next: 'a' });
    expect(await storage.list({ namespace: '', limit: 5, continueAfter: 'a' })).toEqual({ items: [shown('b')] });
  });

  it('keep the hash of their secret for those who check it, and expire at once without a time', async () => {
    const { storage, tokens } = storageOf();
    await storage.create(token('a', { uses: 3 }));
    expect(await tokens.find('a')).toMatchObject({ secretSha256: 'hash', uses: 3, usesLeft: 3, reissue: false });
    await storage.create({ metadata: { name: 'b', uid: 'uid-b' } });
    expect(await tokens.find('b')).toMatchObject({ secretSha256: '', expiresAtMs: 0, uses: 1 });
  });

  it('are made once, never changed, and revoked once', async () => {
    const { storage } = storageOf();
    await storage.create(token('a'));
    const conflict = { kind: 'conflict' };
    expect(await storage.create(token('a'))).toEqual(conflict);
    const stored = (await storage.get('', 'a'))!;
    expect(await storage.update(stored, stored)).toEqual(conflict);
    expect(await storage.remove({ ...stored, metadata: { ...stored.metadata, uid: 'other' } })).toEqual(conflict);
    expect(await storage.remove(stored)).toEqual({ kind: 'written', object: stored });
    expect(await storage.remove(stored)).toEqual(conflict);
  });
});

describe('node identities', () => {
  it('are shown with their keys in pages, are not made here, and are revoked by their version', async () => {
    const identities = nodeKeyStore(memoryItemStore());
    const storage = identityStorage(identities, clock);
    const publicKey = { kty: 'OKP', crv: 'Ed25519', x: 'x'.repeat(43) } as const;
    const keys = [{ keyId: 'k', publicKey, addedAtMs: NOW_MS }];
    for (const nodeName of ['n1', 'n2']) {
      const labels = nodeName === 'n1' ? { labels: { site: 'north' } } : {};
      const identity = { nodeName, uid: `uid-${nodeName}`, createdAtMs: NOW_MS, keys, source: 'user/ada', ...labels };
      await identities.enrol(identity, { nowMs: NOW_MS, along: [], pause: async () => {} });
    }
    const shown = (name: string, labels: object = {}) => ({
      apiVersion: 'nodekeeper.dev/v1alpha1',
      kind: 'NodeIdentity',
      metadata: shownMetadata(name),
      spec: { keys: [{ keyId: 'k', publicKey, addedAt: '2026-01-01T00:00:00Z' }], ...labels, source: 'user/ada' },
    });
    const n1 = shown('n1', { nodeLabels: { site: 'north' } });
    expect(await storage.get('', 'n1')).toEqual(n1);
    expect(await storage.get('', 'n3')).toBeUndefined();
    expect(await storage.list({ namespace: '', limit: 1 })).toEqual({ items: [n1], next: 'n1' });
    expect(await storage.list({ namespace: '', limit: 5, continueAfter: 'n1' })).toEqual({ items: [shown('n2')] });
    expect(await storage.create(n1)).toEqual({ kind: 'conflict' });
    const older = { ...n1, metadata: { ...n1.metadata, resourceVersion: '1' } };
    expect(await storage.remove(older)).toEqual({ kind: 'conflict' });
    expect(await storage.remove(n1)).toEqual({ kind: 'written', object: n1 });
    expect(await storage.get('', 'n1')).toBeUndefined();
  });

  it('and tokens have the time as the version of a list, and no log to watch', async () => {
    const items = memoryItemStore();
    for (const storage of [
      identityStorage(nodeKeyStore(items), clock),
      bootstrapTokenStorage(bootstrapTokenStore(items), clock),
    ]) {
      expect(await storage.listVersion()).toBe(String(NOW_MS * 1_000));
      expect(storage.keepsManagedFields?.('')).toBe(false);
      expect(storage.readsInsteadOfLog?.('')).toBe(true);
    }
  });
});
