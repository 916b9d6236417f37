import { describe, expect, it } from 'vitest';
import { replayed } from '../../../test/support/replayed.ts';
import {
  daemonPodsCreatedDraft,
  daemonPodsDeletedDraft,
  daemonRolloutDraft,
  daemonSetReplay,
  type NodesOfDecision,
} from './decisions.ts';
import type { DaemonPod } from './rule.ts';

const NOW_MS = 100_000;
const set = { metadata: { namespace: 'kube-system', name: 'd', uid: 'u' } };
const ABOUT = { kind: 'DaemonSet', namespace: 'kube-system', name: 'd', uid: 'u' };
const placement = {
  nodeName: '',
  nodeSelector: { disk: 'ssd' },
  nodeTerms: [{ matchExpressions: [{ key: 'zone', operator: 'Exists' }] }, {}],
  tolerations: [],
};
const pod = (name: string, over: Partial<DaemonPod> = {}): DaemonPod =>
  ({
    name,
    namespace: 'kube-system',
    uid: `uid-${name}`,
    resourceVersion: '1',
    labels: {},
    nodeName: 'n2',
    target: 'n2',
    phase: 'Running',
    ready: 'True',
    readyChangedAtMs: 1,
    createdAtMs: 2,
    isDeleting: false,
    isUpdated: true,
    deletionCost: 0,
    restartsMax: 0,
    ...over,
  }) as DaemonPod;
const labels = { disk: 'ssd', zone: 'a', other: 'x' };
const READ = { disk: 'ssd', zone: 'a' };
const of = {
  rules: { placement, minReadySeconds: 0, allowsSurge: false },
  nodes: new Map([
    ['n1', { name: 'n1', labels, taints: [] }],
    ['n2', { name: 'n2', labels, taints: [] }],
    ['n3', { name: 'n3', labels, taints: [] }],
  ]),
  podsOf: new Map([['n2', [pod('b', { createdAtMs: 3 }), pod('a')]]]),
} as unknown as NodesOfDecision;

describe('the record of pods of a DaemonSet', () => {
  it('that are created has the nodes with the labels that the placement reads, and replays', () => {
    const draft = daemonPodsCreatedDraft(set, of, { names: ['p1', 'p3'], nodes: ['n1', 'n3'] }, NOW_MS);
    expect(draft).toEqual({
      act: 'PodsCreated',
      about: ABOUT,
      atMs: NOW_MS,
      reason: 'nodes without a pod: created p1 for n1, p3 for n3',
      rule: 'daemonNodes',
      inputs: {
        rules: of.rules,
        nodes: ['n1', 'n3'].map((name) => ({ name, node: { name, labels: READ, taints: [] }, pods: [] })),
        of: ['n1', 'n3'],
      },
      outcome: { create: ['n1', 'n3'], remove: [] },
    });
    expect(replayed(draft, daemonSetReplay)).toEqual(draft.outcome);
    const fewer = { ...draft, inputs: { ...draft.inputs, of: ['n3'] } } as typeof draft;
    expect(replayed(fewer, daemonSetReplay)).toEqual({ create: ['n3'], remove: [] });
  });

  it('that are deleted has each node once, with what the rule reads of its pods, and replays', () => {
    const removed = [{ name: 'b', target: 'n2', cause: 'surplus' }];
    const draft = daemonPodsDeletedDraft(set, of, removed, NOW_MS);
    const recorded = {
      nodeName: 'n2',
      phase: 'Running',
      ready: 'True',
      readyChangedAtMs: 1,
      isDeleting: false,
      isUpdated: true,
    };
    expect(draft).toEqual({
      act: 'PodsDeleted',
      about: ABOUT,
      atMs: NOW_MS,
      reason: 'deleted b of n2 (surplus)',
      rule: 'daemonNodes',
      inputs: {
        rules: of.rules,
        nodes: [
          {
            name: 'n2',
            node: { name: 'n2', labels: READ, taints: [] },
            pods: [
              { name: 'b', createdAtMs: 3, ...recorded },
              { name: 'a', createdAtMs: 2, ...recorded },
            ],
          },
        ],
        of: ['b'],
      },
      outcome: { create: [], remove: ['b'] },
    });
    expect(replayed(draft, daemonSetReplay)).toEqual(draft.outcome);
  });

  it('of a node that does not exist has no node, and names in order', () => {
    const gone = {
      ...of,
      nodes: new Map(),
      podsOf: new Map([['n2', [pod('z', { nodeName: '' }), pod('y', { nodeName: '' })]]]),
    };
    const removed = ['z', 'y'].map((name) => ({ name, target: 'n2', cause: 'nodeAbsent' }));
    const draft = daemonPodsDeletedDraft(set, gone, removed, NOW_MS);
    expect(draft.outcome).toEqual({ create: [], remove: ['y', 'z'] });
    const { nodes } = draft.inputs as { nodes: object[] };
    expect(nodes.map((each) => Object.keys(each))).toEqual([['name', 'pods']]);
    expect(replayed(draft, daemonSetReplay)).toEqual(draft.outcome);
  });

  it.each([
    ['PodsCreated', 'the template changed: 1 of 2 nodes have two pods; created one for f, a'],
    ['PodsDeleted', 'the template changed: 1 of 2 pods are unavailable; deleted f, a'],
  ] as const)('%s of a new template has the choice, and replays', (act, reason) => {
    const choice = { limit: 2, taken: 1, free: ['f'], candidates: ['a', 'b'] };
    const draft = daemonRolloutDraft(set, act, choice, ['f', 'a'], NOW_MS);
    expect(draft).toEqual({
      act,
      about: ABOUT,
      atMs: NOW_MS,
      reason,
      rule: 'daemonRollout',
      inputs: { choice, of: ['f', 'a'] },
      outcome: { names: ['f', 'a'] },
    });
    expect(replayed(draft, daemonSetReplay)).toEqual({ names: ['f', 'a'] });
    const part = { ...draft, inputs: { choice: { ...choice, taken: 5 }, of: ['a', 'f'] } } as typeof draft;
    expect(replayed(part, daemonSetReplay)).toEqual({ names: ['f'] });
  });
});
