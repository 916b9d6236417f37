import { describe, expect, it } from 'vitest';
import type { KubeNode, KubePod } from '../../shared/kinds/types.ts';
import { Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import { type SchedulablePod, schedulableNode, schedulablePod } from '../../shared/scheduling/world.rule.ts';
import { podAffinityFilter, podAffinityScores, requiredCounts } from './pod-affinity.rule.ts';

const ZONE = 'topology.kubernetes.io/zone';
const RACK = 'rack';

type Kind = 'podAffinity' | 'podAntiAffinity';
const selecting = (app: string) => ({ matchLabels: { app } });
const required = (kind: Kind, ...terms: readonly (readonly [app: string, topologyKey: string])[]) => ({
  [kind]: {
    requiredDuringSchedulingIgnoredDuringExecution: terms.map(([app, topologyKey]) => ({
      topologyKey,
      labelSelector: selecting(app),
    })),
  },
});
const preferred = (kind: Kind, app: string, topologyKey: string, weight: number) => ({
  [kind]: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      { weight, podAffinityTerm: { topologyKey, labelSelector: selecting(app) } },
    ],
  },
});

function pod(name: string, app: string, affinity: object = {}, nodeName?: string): SchedulablePod {
  return schedulablePod({
    metadata: { name, namespace: 'default', uid: name, labels: { app } },
    spec: { containers: [{ name: 'c' }], affinity, ...(nodeName && { nodeName }) },
  } as KubePod);
}

/** Nodes a1 and a2 in zone a, b1 in zone b, and n without a zone; each but n has a rack. */
function world(...bound: readonly SchedulablePod[]): Snapshot {
  const snapshot = new Snapshot();
  const labels = {
    a1: { [ZONE]: 'a', [RACK]: '1' },
    a2: { [ZONE]: 'a', [RACK]: '2' },
    b1: { [ZONE]: 'b', [RACK]: '' },
    n: {},
  };
  for (const [name, of] of Object.entries(labels)) {
    const status = { conditions: [{ type: 'Ready', status: 'True' }], allocatable: { cpu: '4', pods: '10' } };
    snapshot.setNode(schedulableNode({ metadata: { name, uid: name, labels: of }, status } as KubeNode));
  }
  for (const each of bound) snapshot.setPod(each);
  return snapshot;
}

const AFFINITY = "node(s) didn't match pod affinity rules";
const ANTI = "node(s) didn't match pod anti-affinity rules";
const EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules";

describe('the nodes of a pod with required terms', () => {
  /** By node: the reason against it, with `!` where preemption may help; '' where the pod fits. */
  function reasons(of: SchedulablePod, snapshot: Snapshot): Record<string, string> | undefined {
    const filter = podAffinityFilter(of, snapshot);
    if (filter === undefined) return undefined;
    return Object.fromEntries(
      [...snapshot.nodes.values()].map((state) => {
        const found = filter(state);
        return [state.node.name, found === undefined ? '' : `${found.reasons}${found.isResolvable ? '!' : ''}`];
      }),
    );
  }
  const of = (a1: string, a2: string, b1: string, n: string) => ({ a1, a2, b1, n });

  it.each<[string, SchedulablePod, readonly SchedulablePod[], Record<string, string> | undefined]>([
    ['none concerns it', pod('p', 'web'), [pod('x', 'web', {}, 'a1')], undefined],
    [
      'of others, which select another pod',
      pod('p', 'web'),
      [pod('x', 'db', required('podAntiAffinity', ['db', ZONE]), 'a1')],
      undefined,
    ],
    [
      'those of the domain of a pod that it selects',
      pod('p', 'web', required('podAffinity', ['db', ZONE])),
      [pod('x', 'db', {}, 'a1')],
      of('', '', AFFINITY, AFFINITY),
    ],
    [
      'those that are in the domain of each term, of one pod that matches all of them',
      pod('p', 'web', required('podAffinity', ['db', ZONE], ['db', RACK])),
      [pod('x', 'db', {}, 'a1')],
      of('', AFFINITY, AFFINITY, AFFINITY),
    ],
    [
      'none, where two pods match one term each',
      pod('p', 'web', required('podAffinity', ['db', ZONE], ['cache', ZONE])),
      [pod('x', 'db', {}, 'a1'), pod('y', 'cache', {}, 'a1')],
      of(AFFINITY, AFFINITY, AFFINITY, AFFINITY),
    ],
    [
      'all with the label, for the first pod of its kind',
      pod('p', 'web', required('podAffinity', ['web', ZONE])),
      [pod('x', 'db', {}, 'a1')],
      of('', '', '', AFFINITY),
    ],
    [
      'none, where nothing matches and it does not match itself',
      pod('p', 'web', required('podAffinity', ['web', ZONE], ['db', ZONE])),
      [],
      of(AFFINITY, AFFINITY, AFFINITY, AFFINITY),
    ],
    [
      'those of its kind, once there is one',
      pod('p', 'web', required('podAffinity', ['web', ZONE])),
      [pod('x', 'web', {}, 'b1')],
      of(AFFINITY, AFFINITY, '', AFFINITY),
    ],
    [
      'those outside of the domain of a pod that it avoids',
      pod('p', 'web', required('podAntiAffinity', ['db', ZONE])),
      [pod('x', 'db', {}, 'a1')],
      of(`${ANTI}!`, `${ANTI}!`, '', ''),
    ],
    [
      'those outside of every domain of pods that it avoids by one key',
      pod('p', 'web', required('podAntiAffinity', ['db', RACK], ['cache', RACK])),
      [pod('x', 'db', {}, 'a1'), pod('y', 'cache', {}, 'b1')],
      of(`${ANTI}!`, '', `${ANTI}!`, ''),
    ],
    [
      'those outside of the domain of a pod that avoids it',
      pod('p', 'web'),
      [pod('x', 'db', required('podAntiAffinity', ['web', ZONE]), 'b1')],
      of('', '', `${EXISTING}!`, ''),
    ],
  ])('are %s', (_, waiting, bound, expected) => {
    expect(reasons(waiting, world(...bound))).toEqual(expected);
  });

  it('have the counts of pods on either side of a required term', () => {
    const snapshot = world(
      pod('x', 'db', {}, 'a1'),
      pod('y', 'db', {}, 'a1'),
      pod('z', 'lone', required('podAntiAffinity', ['web', ZONE]), 'b1'),
      pod('w', 'other', required('podAntiAffinity', ['none', ZONE]), 'n'),
    );
    const counts = (affinity: object) => requiredCounts(pod('p', 'web', affinity), snapshot).map((each) => [...each]);
    expect(counts({})).toEqual([[['b1', 1]]]);
    expect(counts(required('podAffinity', ['db', ZONE]))).toEqual([[['a1', 2]], [['b1', 1]]]);
    expect(counts(required('podAntiAffinity', ['db', ZONE]))).toEqual([[['a1', 2]], [['b1', 1]]]);
  });
});

describe('the scores of a pod', () => {
  const scores = (of: SchedulablePod, snapshot: Snapshot) => {
    const found = podAffinityScores(of, [...snapshot.nodes.values()], snapshot);
    return found && Object.fromEntries(found);
  };

  it.each<[string, SchedulablePod, readonly SchedulablePod[], Record<string, number> | undefined]>([
    ['absent without a term that matches', pod('p', 'web'), [pod('x', 'db', {}, 'a1')], undefined],
    [
      'absent where the pods that match are in no domain',
      pod('p', 'web', preferred('podAffinity', 'db', ZONE, 5)),
      [pod('x', 'db', {}, 'n')],
      undefined,
    ],
    [
      'higher near pods that it prefers, by their number',
      pod('p', 'web', preferred('podAffinity', 'db', ZONE, 5)),
      [pod('x', 'db', {}, 'a1'), pod('y', 'db', {}, 'a2'), pod('z', 'db', {}, 'b1')],
      { a1: 100, a2: 100, b1: 50, n: 0 },
    ],
    [
      'lower near pods that it avoids',
      pod('p', 'web', preferred('podAntiAffinity', 'db', ZONE, 5)),
      [pod('x', 'db', {}, 'a1'), pod('y', 'db', {}, 'a2'), pod('z', 'db', {}, 'b1')],
      { a1: 0, a2: 0, b1: 50, n: 100 },
    ],
    [
      'higher near pods that prefer it, by their weight',
      pod('p', 'web'),
      [
        pod('x', 'db', preferred('podAffinity', 'web', ZONE, 3), 'a1'),
        pod('y', 'db', preferred('podAffinity', 'web', RACK, 9), 'a2'),
        pod('z', 'db', preferred('podAffinity', 'none', ZONE, 50), 'b1'),
      ],
      { a1: 25, a2: 100, b1: 0, n: 0 },
    ],
    [
      'those of an empty value only where the label is present',
      pod('p', 'web', preferred('podAffinity', 'db', RACK, 5)),
      [pod('x', 'db', {}, 'b1')],
      { a1: 0, a2: 0, b1: 100, n: 0 },
    ],
    [
      'the same where all nodes are alike',
      pod('p', 'web', { ...preferred('podAffinity', 'db', ZONE, 5), ...preferred('podAntiAffinity', 'db', ZONE, 5) }),
      [pod('x', 'db', {}, 'a1')],
      { a1: 0, a2: 0, b1: 0, n: 0 },
    ],
  ])('are %s', (_, waiting, bound, expected) => {
    expect(scores(waiting, world(...bound))).toEqual(expected);
  });
});
