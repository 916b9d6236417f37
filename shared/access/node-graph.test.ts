import { describe, expect, it } from 'vitest';
import type { ResourceStorage } from '../api/resource-storage.ts';
import type { KubePod } from '../kinds/types.ts';
import { NODES_GROUP } from './authorize.ts';
import { nodeGraph } from './node-graph.ts';
import type { UserInfo } from './user-info.ts';

describe('the references of the pods of a node', () => {
  /** Each node has one pod, which refers to the Secret of its name. */
  function graph(podsOf = (nodeName: string): KubePod[] => [podOf(nodeName, nodeName)]) {
    const reads: string[] = [];
    const storage: Partial<ResourceStorage> = {
      async list({ nodeName = '', limit, continueAfter = '0' }) {
        const all = podsOf(nodeName);
        const from = Number(continueAfter);
        reads.push(`${nodeName}@${from}`);
        const next = from + limit < all.length ? { next: String(from + limit) } : {};
        return { items: all.slice(from, from + limit), ...next };
      },
    };
    const { refusal } = nodeGraph({ storageOf: () => storage as ResourceStorage });
    const mayRead = async (name: string, secret: string, nowMs: number) => {
      const target = { group: '', resource: 'secrets', subresource: '', namespace: 'a', name: secret };
      const user = { username: `system:node:${name}`, groups: [NODES_GROUP] };
      return (await refusal({ user, verb: 'get', target, query: undefined, nowMs })) === undefined;
    };
    return { reads, mayRead };
  }
  const podOf = (nodeName: string, secret: string): KubePod => ({
    metadata: { name: secret, namespace: 'a' },
    spec: { nodeName, imagePullSecrets: [{ name: secret }] },
  });

  it('are read again after five seconds, and for what they did not have', async () => {
    const { reads, mayRead } = graph();
    for (const [atMs, times] of [
      [0, 1],
      [4_999, 1],
      [5_000, 2],
      [9_999, 2],
    ] as const) {
      expect(await mayRead('n1', 'n1', atMs)).toBe(true);
      expect(reads).toHaveLength(times);
    }
    expect(await mayRead('n1', 'other', 9_999)).toBe(false);
    expect(reads).toHaveLength(3);
  });

  it.each([
    [999, 1],
    [1_000, 2],
  ])('outlive those of %i other nodes: read %i times', async (count, times) => {
    const { reads, mayRead } = graph();
    await mayRead('n1', 'n1', 0);
    for (let other = 0; other < count; other += 1) await mayRead(`other-${other}`, `other-${other}`, 0);
    await mayRead('n1', 'n1', 0);
    expect(reads.filter((each) => each === 'n1@0')).toHaveLength(times);
  });

  it('of a node that were read again are not dropped before older ones', async () => {
    const { reads, mayRead } = graph();
    await mayRead('n1', 'n1', 0);
    for (let other = 1; other < 1_000; other += 1) await mayRead(`other-${other}`, `other-${other}`, 0);
    for (const name of ['n1', 'another', 'n1']) await mayRead(name, name, 5_000);
    expect(reads.slice(-2)).toEqual(['n1@0', 'another@0']);
  });

  it('are those of ten thousand pods of this node, and of no other one', async () => {
    const { reads, mayRead } = graph((nodeName) => [
      ...Array.from({ length: 10_000 }, (_, index) => podOf(index === 0 ? 'another' : nodeName, `s${index}`)),
      podOf(nodeName, 'beyond'),
    ]);
    expect(await mayRead('n1', 's9999', 0)).toBe(true);
    expect(reads).toHaveLength(20);
    expect(reads.slice(0, 3)).toEqual(['n1@0', 'n1@500', 'n1@1000']);
    expect(await mayRead('n1', 's0', 0)).toBe(false);
    expect(await mayRead('n1', 'beyond', 0)).toBe(false);
  });

  it('contain no name that is longer than a name may be', async () => {
    const { reads, mayRead } = graph();
    expect(await mayRead('n1', 'x'.repeat(254), 0)).toBe(false);
    expect(reads).toEqual([]);
    expect(await mayRead('n1', 'x'.repeat(253), 0)).toBe(false);
    expect(reads).toEqual(['n1@0']);
  });
});

describe('an object that a node asks for', () => {
  const claimOf = (spec: object) => ({ metadata: { name: 'v' }, spec });
  const pod: KubePod = {
    metadata: { name: 'p', namespace: 'a' },
    spec: {
      nodeName: 'n1',
      serviceAccountName: 'bot',
      imagePullSecrets: [{ name: 's' }],
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }],
    } as never,
  };
  const volumes: Readonly<Record<string, object>> = {
    bound: claimOf({ claimRef: { namespace: 'a', name: 'c' } }),
    other: claimOf({ claimRef: { namespace: 'b', name: 'c' } }),
    unbound: claimOf({}),
  };
  const asked: unknown[] = [];
  const { refusal } = nodeGraph({
    storageOf: (descriptor) =>
      ({
        list: async () => ({ items: [pod] }),
        get: async (namespace: string, name: string) => {
          asked.push([descriptor.resource, namespace, name]);
          return volumes[name];
        },
      }) as Partial<ResourceStorage> as ResourceStorage,
  });
  const node = { username: 'system:node:n1', groups: [NODES_GROUP] };
  const why = "no relationship found between node 'n1' and this object";
  const ask = (more: object, query?: string, verb = 'get', user: UserInfo = node) => {
    const target = { group: '', resource: 'secrets', subresource: '', namespace: 'a', name: 's', ...more };
    return refusal({
      user,
      verb,
      target,
      query: query === undefined ? undefined : new URLSearchParams(query),
      nowMs: 0,
    });
  };

  it('must be one that a pod of it refers to, in its namespace', async () => {
    expect(await ask({})).toBeUndefined();
    for (const other of [{ namespace: 'b' }, { name: 't' }, { resource: 'configmaps' }])
      expect(await ask(other)).toBe(why);
    expect(await ask({ resource: 'persistentvolumeclaims', name: 'c' })).toBeUndefined();
    expect(await ask({ resource: 'serviceaccounts', subresource: 'token', name: 'bot' }, undefined, 'create')).toBe(
      undefined,
    );
  });

  it('is found by the selector of a list, or it is none', async () => {
    const select = (selector: string) => ask({ name: '' }, `fieldSelector=${encodeURIComponent(selector)}`, 'list');
    expect(await select('metadata.name=s')).toBeUndefined();
    for (const selector of ['metadata.name=t', 'metadata.name!=s', 'metadata.name=', '!', ''])
      expect(await select(selector), selector).toBe(why);
    expect(await ask({ name: '' }, '', 'list')).toBe(why);
    expect(await ask({ name: '' }, undefined, 'list')).toBe(why);
    // The name in the path comes first.
    expect(await ask({}, 'fieldSelector=metadata.name%3Dt')).toBeUndefined();
  });

  it('that is a volume is one of a claim of its pods', async () => {
    asked.length = 0;
    const volume = (name: string) => ask({ resource: 'persistentvolumes', namespace: '', name });
    expect(await volume('bound')).toBeUndefined();
    for (const name of ['other', 'unbound', 'none']) expect(await volume(name), name).toBe(why);
    expect(asked[0]).toEqual(['persistentvolumes', '', 'bound']);
  });

  it('of other users, and of other kinds, is of no concern here', async () => {
    expect(await ask({ name: 't' }, undefined, 'get', { username: 'ada', groups: [] })).toBeUndefined();
    expect(await ask({ resource: 'services', name: 't' })).toBeUndefined();
  });
});
