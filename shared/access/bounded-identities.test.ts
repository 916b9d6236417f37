/** What is kept per identity is bounded, and the bound drops the least recent one: neither earlier nor later. */
import { describe, expect, it } from 'vitest';
import type { ResourceStorage } from '../api/resource-storage.ts';
import type { KubePod } from '../kinds/types.ts';
import type { Log } from '../observability/log.ts';
import { NODES_GROUP } from './authorize.ts';
import { nodeGraph } from './node-graph.ts';
import { policyCache } from './policy-cache.ts';
import { refusedRequests } from './refused-requests.ts';
import { HEARTBEAT_LIMITS, requestThrottle } from './request-throttle.ts';

const node = (name: string) => ({ username: `system:node:${name}`, groups: [NODES_GROUP] });
const others = (count: number): string[] => Array.from({ length: count }, (_, index) => `other-${index}`);

it.each([
  [19_999, true],
  [20_000, false],
])('the account of an identity outlives %i others: %s', (count, isKept) => {
  const throttle = requestThrottle(HEARTBEAT_LIMITS);
  const isRefused = (name: string): boolean => {
    try {
      throttle.begin(0).admit(node(name));
      return false;
    } catch {
      return true;
    }
  };
  for (let request = 0; request < HEARTBEAT_LIMITS.node.rate.burst; request += 1) isRefused('greedy');
  expect(isRefused('greedy')).toBe(true);
  for (const name of others(count)) isRefused(name);
  expect(isRefused('greedy')).toBe(isKept);
});

describe('refusals that are not reported yet', () => {
  it.each([
    [199, 3],
    [200, 1],
  ])('outlive %i other identities with a count of %i', async (count, reported) => {
    const counts: number[] = [];
    const refuse = refusedRequests({
      log: { warn: () => {} } as unknown as Log,
      store: async ({ username, count: stored }) => void (username === 'greedy' && counts.push(stored)),
      noteFault: () => {},
    });
    const by = (username: string) => ({ kind: 'node', username, over: 'rate' }) as const;
    for (let request = 0; request < 3; request += 1) await refuse(by('greedy'), 0);
    for (const name of others(count)) await refuse(by(name), 0);
    await refuse(by('greedy'), 60_000);
    expect(counts).toEqual([1, reported]);
  });

  it('are reported a minute after the last report, or when the clock was set back', async () => {
    const counts: number[] = [];
    const refuse = refusedRequests({
      log: { warn: () => {} } as unknown as Log,
      store: async ({ count }) => void counts.push(count),
      noteFault: () => {},
    });
    const greedy = { kind: 'node', username: 'greedy', over: 'rate' } as const;
    for (const atMs of [100_000, 159_999, 160_000, 160_000, 160_000]) await refuse(greedy, atMs);
    expect(counts).toEqual([1, 2]);
    await refuse(greedy, 159_999);
    expect(counts).toEqual([1, 2, 3]);
  });
});

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
      return (await refusal({ user: node(name), verb: 'get', target, query: undefined, nowMs })) === undefined;
    };
    return { reads, mayRead };
  }
  const podOf = (nodeName: string, secret: string): KubePod => ({
    metadata: { name: secret, namespace: 'a' },
    spec: { nodeName, imagePullSecrets: [{ name: secret }] },
  });

  it('are read again after five seconds, and for what they did not have', async () => {
    const { reads, mayRead } = graph();
    for (const atMs of [0, 4_999, 5_000, 9_999]) expect(await mayRead('n1', 'n1', atMs)).toBe(true);
    expect(reads).toEqual(['n1@0', 'n1@0']);
    expect(await mayRead('n1', 'other', 9_999)).toBe(false);
    expect(reads).toHaveLength(3);
  });

  it.each([
    [999, 1],
    [1_000, 2],
  ])('outlive those of %i other nodes: read %i times', async (count, times) => {
    const { reads, mayRead } = graph();
    await mayRead('n1', 'n1', 0);
    for (const name of others(count)) await mayRead(name, name, 0);
    await mayRead('n1', 'n1', 0);
    expect(reads.filter((each) => each === 'n1@0')).toHaveLength(times);
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

describe('the policies of a namespace', () => {
  function policies() {
    const reads: string[] = [];
    const cache = policyCache({
      changes: { newestCommits: async () => [0, 0, 1, 0] },
      list: async (_, { namespace }) => {
        reads.push(namespace);
        return { items: [] };
      },
      defaultRoles: [],
      defaultBindings: [],
    });
    return { reads, view: (namespace: string) => cache.view(namespace, { nowMs: 0, ageMaxMs: 5_000 }) };
  }

  it.each([
    [499, 1],
    [500, 2],
  ])('outlive those of %i others: read %i times', async (count, times) => {
    const { reads, view } = policies();
    await view('first');
    for (const name of others(count)) await view(name);
    await view('first');
    expect(reads.filter((each) => each === 'first')).toHaveLength(times);
  });

  it.each([['x'.repeat(64)], ['-a'], ['a-'], ['A'], ['a.b'], ['']])(
    'are not read for %j, which is none',
    async (text) => {
      const { reads, view } = policies();
      await view(text);
      expect(reads).toEqual([]);
    },
  );

  it('are read for the longest name', async () => {
    const { reads, view } = policies();
    await view('x'.repeat(63));
    expect(reads).toHaveLength(1);
  });
});
