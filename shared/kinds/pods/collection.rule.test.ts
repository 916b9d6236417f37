import { describe, expect, it } from 'vitest';
import {
  type CollectablePod,
  outOfServiceRemovals,
  podRemovals,
  settleOrphans,
  terminatedRemovals,
  watchOrphans,
} from './collection.rule.ts';

const pod = (name: string, over: Partial<CollectablePod> = {}): CollectablePod => ({
  namespace: 'default',
  name,
  uid: `uid-${name}`,
  nodeName: 'n',
  phase: 'Running',
  reason: undefined,
  createdAtMs: 0,
  terminating: false,
  ...over,
});
const names = (removals: readonly { name: string }[]): string[] => removals.map(({ name }) => name);

describe('terminatedRemovals', () => {
  it('treats a pod without a phase as terminated, but not a Pending, Running or Unknown one', () => {
    const pods = [pod('a', { phase: undefined }), pod('b', { phase: 'Pending' }), pod('c', { phase: 'Failed' })];
    expect(names(terminatedRemovals(pods, 1))).toEqual(['a']);
  });

  it('orders equals by name', () => {
    const pods = ['c', 'a', 'b'].map((name) => pod(name, { phase: 'Failed' }));
    expect(names(terminatedRemovals(pods, 1))).toEqual(['a', 'b']);
  });
});

describe('outOfServiceRemovals', () => {
  it('ignores pods of a Ready node even with the taint', () => {
    const taints = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' as const }];
    const pods = [pod('p', { terminating: true })];
    expect(outOfServiceRemovals(pods, [{ name: 'n', ready: 'True', taints }])).toEqual([]);
    expect(outOfServiceRemovals(pods, [{ name: 'n', ready: undefined, taints }])).toEqual([
      {
        namespace: 'default',
        name: 'p',
        podUid: 'uid-p',
        reason: 'out-of-service',
        steps: [
          { kind: 'markFailed', condition: undefined },
          { kind: 'delete', gracePeriodSeconds: 0 },
        ],
      },
    ]);
  });
});

describe('the quarantine', () => {
  const policy = { orphanQuarantineSeconds: 40 };
  const watch = (quarantine: ReadonlyMap<string, number>, nowMs: number, nodeNames: string[] = []) =>
    watchOrphans({ pods: [pod('p')], nodeNames: new Set(nodeNames), quarantine }, nowMs, policy);

  it('is over from 40 s on', () => {
    const { quarantine } = watch(new Map(), 0);
    expect(watch(quarantine, 39_999).ripe).toEqual([]);
    expect(watch(quarantine, 40_000).ripe).toEqual(['n']);
  });

  it('restarts when the node existed in between', () => {
    const seen = watch(watch(new Map(), 0).quarantine, 20_000, ['n']);
    expect(seen.quarantine.size).toBe(0);
    expect(watch(seen.quarantine, 45_000).quarantine.get('n')).toBe(45_000);
  });

  it('restarts after a failed read, and ends with an answer', () => {
    const reads = new Map([
      ['a', 'failed'],
      ['b', 'missing'],
      ['c', 'exists'],
    ] as const);
    const settled = settleOrphans(new Map([...reads.keys()].map((name) => [name, 0])), reads, 50_000);
    expect([...settled.quarantine]).toEqual([['a', 50_000]]);
    expect([...settled.missing]).toEqual(['b']);
  });

  it('ignores unbound pods', () => {
    const pods = [pod('a', { nodeName: undefined }), pod('b', { nodeName: '' })];
    expect(watchOrphans({ pods, nodeNames: new Set(), quarantine: new Map() }, 0, policy).quarantine.size).toBe(0);
  });
});

describe('podRemovals', () => {
  it('removes a pod once, by the first kind that matches', () => {
    const taints = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' as const }];
    const world = {
      pods: [pod('p', { terminating: true }), pod('q', { terminating: true, nodeName: undefined })],
      nodes: [{ name: 'n', ready: 'Unknown' as const, taints }],
      missing: new Set(['n']),
    };
    expect(podRemovals(world, { terminatedPodGcThreshold: 0 }).map(({ name, reason }) => `${name} ${reason}`)).toEqual([
      'p out-of-service',
      'q unscheduled',
    ]);
  });
});
