import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import {
  type CollectableNode,
  type CollectablePod,
  type PodRemoval,
  podRemovals,
} from '../../shared/kinds/pods/collection.rule.ts';
import { replayed } from '../../test/support/replayed.ts';
import { podGcDraft, podGcReplay } from './decisions.ts';

const NOW_MS = 1_000_000;
const policy = { ...defaultPolicy, terminatedPodGcThreshold: 2 };
const pod = (over: Partial<CollectablePod> = {}): CollectablePod => ({
  namespace: 'web',
  name: 'p',
  uid: 'u',
  nodeName: 'n1',
  phase: 'Running',
  reason: undefined,
  createdAtMs: 5,
  terminating: false,
  ...over,
});
const down: CollectableNode = {
  name: 'n1',
  ready: 'False',
  taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }],
};

describe('the record of a pod that is collected', () => {
  it.each<[string, CollectablePod, 'missing' | CollectableNode | undefined, string, number]>([
    ['orphaned', pod(), 'missing', 'its node no longer exists (n1)', 0],
    [
      'out-of-service',
      pod({ terminating: true }),
      down,
      'the pod is terminating, and its node is out of service (n1)',
      0,
    ],
    [
      'unscheduled',
      pod({ terminating: true, nodeName: undefined }),
      undefined,
      'the pod is terminating and was never scheduled',
      0,
    ],
    [
      'terminated',
      pod({ phase: 'Succeeded' }),
      undefined,
      'the pod has terminated, and terminated pods exceed the limit (n1)',
      2,
    ],
  ])('%s: what the rule read, and no more; it replays', (remove, collected, node, reason, othersEnded) => {
    const others = Array.from({ length: 2 }, (_, index) =>
      pod({ name: `e${index}`, uid: `e${index}`, phase: 'Succeeded', createdAtMs: 9, nodeName: 'n2' }),
    );
    const nodes = [...(typeof node === 'object' ? [node] : [])];
    const missing = new Set(node === 'missing' ? ['n1'] : []);
    const removal = podRemovals({ pods: [collected, ...others], nodes, missing }, policy).find(
      ({ podUid }) => podUid === 'u',
    );
    if (removal === undefined) throw new Error('not removed');
    const draft = podGcDraft(removal, { pod: collected, node: down, othersEnded: 2 }, NOW_MS, policy);
    expect(draft).toEqual({
      act: 'PodCollected',
      about: { kind: 'Pod', namespace: 'web', name: 'p', uid: 'u' },
      atMs: NOW_MS,
      reason,
      rule: 'podGc',
      inputs: {
        pod: collected,
        ...(node === undefined ? {} : { node }),
        othersEnded,
        policy: { terminatedPodGcThreshold: 2 },
      },
      outcome: { remove, steps: removal.steps.map(({ kind }) => kind) },
    });
    expect(replayed(draft, podGcReplay)).toEqual(draft.outcome);
  });

  it('replays to nothing where the terminated pods do not exceed the limit, or no one terminated', () => {
    const removal: PodRemoval = { reason: 'terminated', namespace: 'web', name: 'p', podUid: 'u', steps: [] };
    const ended = (phase: 'Failed' | 'Running', othersEnded: number) =>
      podGcDraft(removal, { pod: pod({ phase }), node: undefined, othersEnded }, NOW_MS, policy);
    expect(replayed(ended('Failed', 1), podGcReplay)).toEqual({ kind: 'nothing' });
    expect(replayed(ended('Running', 9), podGcReplay)).toEqual({ kind: 'nothing' });
  });
});
