import { describe, expect, it } from 'vitest';
import type { KubeNode, KubePod } from '../../shared/kinds/types.ts';
import type { Rejection } from '../../shared/scheduling/filter.rule.ts';
import { Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import { type SchedulablePod, schedulableNode, schedulablePod } from '../../shared/scheduling/world.rule.ts';
import {
  type Candidate,
  hasPossibleVictims,
  type PreemptionBudget,
  type PreemptionOptions,
  pickCandidate,
  preempt,
} from './preemption.rule.ts';
import { type NoFit, schedulePod } from './rule.ts';

const OPTIONS: PreemptionOptions = { percentageOfNodesToScore: 0, defaultTopologySpread: 'none', budgets: [] };

interface PodParts {
  readonly priority?: number;
  readonly nodeName?: string;
  readonly cpu?: string;
  readonly labels?: object;
  readonly startTime?: string;
  readonly spec?: object;
  readonly status?: object;
  readonly metadata?: object;
}
const pod = (
  name: string,
  { priority = 0, nodeName, cpu = '1', labels, startTime, spec, status, metadata }: PodParts = {},
): SchedulablePod =>
  schedulablePod({
    metadata: { namespace: 'd', name, uid: `u-${name}`, labels, ...metadata },
    spec: { priority, nodeName, containers: [{ name: 'c', resources: { requests: { cpu } } }], ...spec },
    status: { startTime, ...status },
  } as unknown as KubePod);

/** Nodes of two cores with these pods. */
function cluster(pods: readonly SchedulablePod[], names: readonly string[] = ['n']) {
  const snapshot = new Snapshot();
  for (const name of names) {
    snapshot.setNode(
      schedulableNode({
        metadata: { name },
        status: { conditions: [{ type: 'Ready', status: 'True' }], allocatable: { cpu: '2', pods: '9' } },
      } as unknown as KubeNode),
    );
  }
  for (const each of pods) snapshot.setPod(each);
  return snapshot;
}
function preempted(incoming: SchedulablePod, snapshot: Snapshot, options: Partial<PreemptionOptions> = {}) {
  const noFit = schedulePod(incoming, snapshot, OPTIONS) as NoFit;
  expect(noFit.kind).toBe('rejected');
  const outcome = preempt(incoming, snapshot, { noFit, options: { ...OPTIONS, ...options } });
  const isPossible = hasPossibleVictims(incoming, snapshot, { noFit, options });
  if (outcome.kind !== 'candidate') return { kind: outcome.kind, text: outcome.text, isPossible };
  const { nodeName, victims, violations } = outcome.chosen;
  return {
    nodeName,
    victims: victims.map(({ name }) => name),
    violations,
    candidates: outcome.candidates.length,
    isPossible,
  };
}
const budget = (allowed: number, more: Partial<PreemptionBudget> = {}): PreemptionBudget => ({
  namespace: 'd',
  matches: (labels) => labels['app'] === 'db',
  allowed,
  disruptedPods: new Set(),
  ...more,
});
const on = (name: string, nodeName: string, more: PodParts = {}) => pod(name, { nodeName, ...more });

describe('the victims of a pod', () => {
  it('are as few as it needs, the less important ones', () => {
    const snapshot = cluster([
      on('old', 'n', { startTime: '2026-01-01T00:00:00Z' }),
      on('young', 'n', { startTime: '2026-01-02T00:00:00Z' }),
    ]);
    expect(preempted(pod('p', { priority: 1 }), snapshot)).toEqual({
      nodeName: 'n',
      victims: ['young'],
      violations: 0,
      candidates: 1,
      isPossible: true,
    });
    expect(preempted(pod('p', { priority: 1, cpu: '2' }), snapshot)).toMatchObject({ victims: ['old', 'young'] });
    const ranked = cluster([
      on('low', 'n', { priority: 1, startTime: '2026-01-01T00:00:00Z' }),
      on('high', 'n', { priority: 2 }),
    ]);
    expect(preempted(pod('p', { priority: 3 }), ranked)).toMatchObject({ victims: ['low'] });
    const waiting = cluster([on('started', 'n', { startTime: '2026-01-01T00:00:00Z' }), on('not-started', 'n')]);
    expect(preempted(pod('p', { priority: 1 }), waiting)).toMatchObject({ victims: ['not-started'] });
    const alike = cluster([on('b', 'n'), on('a', 'n')]);
    expect(preempted(pod('p', { priority: 1 }), alike)).toMatchObject({ victims: ['b'] });
  });

  it('have a lower priority, and enough of them', () => {
    const full = cluster([on('a', 'n', { priority: 5 }), on('b', 'n', { priority: 5 })]);
    const none = {
      kind: 'notHelpful',
      text: '0/1 nodes are available: 1 No preemption victims found for incoming pod.',
    };
    expect(preempted(pod('p', { priority: 5 }), full)).toEqual({ ...none, isPossible: false });
    const some = cluster([on('a', 'n', { priority: 5 }), on('b', 'n', { priority: 1 })]);
    expect(preempted(pod('p', { priority: 5, cpu: '2' }), some)).toEqual({
      kind: 'notHelpful',
      text: '0/1 nodes are available: 1 Insufficient cpu.',
      isPossible: true,
    });
  });

  it('leave the cluster as it was', () => {
    const snapshot = cluster([on('a', 'n'), on('b', 'n')]);
    preempted(pod('p', { priority: 1 }), snapshot);
    expect(snapshot.nodes.get('n')?.used.cpu).toBe(2_000);
  });

  it('keep to budgets where others would do, and are counted where none would', () => {
    const db = { labels: { app: 'db' } };
    const snapshot = () =>
      cluster([
        on('db', 'n', { ...db, startTime: '2026-01-02T00:00:00Z' }),
        on('web', 'n', { startTime: '2026-01-01T00:00:00Z' }),
      ]);
    const victimsOf = (...budgets: readonly PreemptionBudget[]) =>
      preempted(pod('p', { priority: 1 }), snapshot(), { budgets }).victims;
    expect(victimsOf()).toEqual(['db']);
    expect(victimsOf(budget(0))).toEqual(['web']);
    expect(victimsOf(budget(1))).toEqual(['db']);
    expect(victimsOf(budget(0, { namespace: 'e' }))).toEqual(['db']);
    expect(victimsOf(budget(0, { disruptedPods: new Set(['db']) }))).toEqual(['db']);
    expect(victimsOf(budget(9), budget(0))).toEqual(['web']);
    const both = cluster([on('a', 'n', db), on('b', 'n', db)]);
    const found = (allowed: number) =>
      preempted(pod('p', { priority: 1, cpu: '2' }), both, { budgets: [budget(allowed)] }).violations;
    expect([found(0), found(1), found(2)]).toEqual([2, 1, 0]);
  });
});

describe('terms of affinity', () => {
  const terms = (kind: 'podAffinity' | 'podAntiAffinity', ...values: readonly string[]) => ({
    affinity: {
      [kind]: {
        requiredDuringSchedulingIgnoredDuringExecution: values.map((app) => ({
          topologyKey: 'kubernetes.io/hostname',
          labelSelector: { matchLabels: { app } },
        })),
      },
    },
  });
  const hosts = (pods: readonly SchedulablePod[], names: readonly string[] = ['n']) => {
    const snapshot = cluster(pods, names);
    for (const { node } of snapshot.nodes.values()) {
      snapshot.setNode({ ...node, labels: { 'kubernetes.io/hostname': node.name } });
    }
    return snapshot;
  };
  const small = (name: string, app: string, more: PodParts = {}) =>
    on(name, 'n', { cpu: '0', labels: { app }, ...more });

  it('have as victims the pods of either side that exclude the pod, and no others', () => {
    const avoiding = small('avoiding', 'other', { spec: terms('podAntiAffinity', 'web') });
    const incoming = pod('in', { priority: 9, labels: { app: 'web' }, spec: terms('podAntiAffinity', 'db') });
    const snapshot = hosts([small('db', 'db'), small('free', 'free'), avoiding]);
    expect(preempted(incoming, snapshot)).toMatchObject({ nodeName: 'n', victims: ['avoiding', 'db'] });
  });

  it('keep a pod that the incoming one needs beside it', () => {
    const incoming = pod('in', { priority: 9, spec: terms('podAffinity', 'db') });
    const snapshot = hosts([small('db', 'db', { cpu: '1' }), small('free', 'free', { cpu: '1' })]);
    expect(preempted(incoming, snapshot)).toMatchObject({ kind: 'notHelpful' });
    snapshot.setPod(small('old', 'db', { priority: 9 }));
    expect(preempted(incoming, snapshot)).toMatchObject({ nodeName: 'n', victims: ['free'] });
  });

  it('count also for a pod that is nominated to the node', () => {
    const waiting = pod('waiting', {
      ...{ priority: 9, cpu: '0', status: { nominatedNodeName: 'n' } },
      spec: terms('podAntiAffinity', 'web'),
    });
    const snapshot = hosts([small('low', 'low', { cpu: '2' }), waiting]);
    expect(preempted(pod('in', { priority: 9, labels: { app: 'web' } }), snapshot).kind).toBe('notHelpful');
    expect(preempted(pod('in', { priority: 9 }), snapshot)).toMatchObject({ victims: ['low'] });
  });

  it('are compared once with each pod, and once with each one that is removed or put back', () => {
    const values = Array.from({ length: 600 }, (_, index) => `app-${index}`);
    const incoming = pod('in', { priority: 9, spec: terms('podAntiAffinity', ...values) });
    const names = Array.from({ length: 40 }, (_, index) => `low-${index}`);
    const snapshot = hosts(names.map((name) => small(name, name, { cpu: '0.05' })));
    let compared = 0;
    const antiAffinity = incoming.antiAffinity.map((term) => {
      const matches = (labels: SchedulablePod['labels']): boolean => {
        compared += 1;
        return term.selector.matches(labels);
      };
      return { ...term, selector: { ...term.selector, matches } };
    });
    const noFit = schedulePod(incoming, snapshot, OPTIONS) as NoFit;
    expect(preempt({ ...incoming, antiAffinity }, snapshot, { noFit, options: OPTIONS }).kind).toBe('candidate');
    // 40 pods at first; 40 are removed, 40 put back, and some removed again, also in counts that are kept.
    expect(compared / values.length).toBeLessThan(260);
  });
});

describe('a pod may not preempt', () => {
  const snapshot = cluster([on('a', 'n'), on('b', 'n')]);

  it.each<[PodParts, Partial<PreemptionOptions>, string]>([
    [{ spec: { preemptionPolicy: 'Never' } }, {}, 'not eligible due to preemptionPolicy=Never.'],
    [{}, { refusal: 'a closed safety gate' }, 'not eligible due to a closed safety gate.'],
  ])('with %j and %j', (parts, options, text) => {
    expect(preempted(pod('p', { priority: 1, ...parts }), snapshot, options)).toEqual({
      kind: 'notEligible',
      text,
      isPossible: false,
    });
  });

  it('while a victim on its nominated node terminates', () => {
    const victim = (parts: PodParts = {}) =>
      on('victim', 'n', {
        metadata: { deletionTimestamp: 't' },
        status: { conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }] },
        ...parts,
      });
    const eligible = (each: SchedulablePod, nominatedNodeName = 'n') =>
      preempted(pod('p', { priority: 1, status: { nominatedNodeName } }), cluster([each, on('b', 'n')])).kind !==
      'notEligible';
    expect(eligible(victim())).toBe(false);
    expect(eligible(victim({ metadata: {} }))).toBe(true);
    expect(eligible(victim({ status: {} }))).toBe(true);
    expect(eligible(victim({ priority: 1 }))).toBe(true);
    expect(eligible(victim(), 'absent')).toBe(true);
    expect(eligible(victim(), '')).toBe(true);
  });

  it('unless its nominated node can no longer be used', () => {
    const ending = on('victim', 'n', {
      metadata: { deletionTimestamp: 't' },
      status: { conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }] },
    });
    const two = cluster([ending, on('b', 'm'), on('c', 'm')], ['n', 'm']);
    const incoming = pod('p', { priority: 1, cpu: '2', status: { nominatedNodeName: 'n' } });
    const rejection = (isResolvable: boolean): Rejection => ({ plugin: 'NodeAffinity', reasons: ['x'], isResolvable });
    const noFit = (isResolvable: boolean): NoFit => ({
      kind: 'rejected',
      message: '',
      plugins: [],
      rejections: new Map([
        ['n', rejection(isResolvable)],
        ['m', rejection(true)],
      ]),
    });
    expect(preempt(incoming, two, { noFit: noFit(true), options: OPTIONS }).kind).toBe('notEligible');
    expect(preempt(incoming, two, { noFit: noFit(false), options: OPTIONS })).toMatchObject({
      chosen: { nodeName: 'm' },
    });
  });
});

it('nodes where removing pods cannot help are not evaluated', () => {
  const snapshot = cluster([on('a', 'n'), on('b', 'n')], ['n', 'm']);
  const incoming = pod('p', { priority: 1, cpu: '3' });
  expect(preempted(incoming, snapshot)).toEqual({
    kind: 'notHelpful',
    text: '0/2 nodes are available: 2 Preemption is not helpful for scheduling.',
    isPossible: false,
  });
});

it('a tenth of many nodes is evaluated, a hundred at least, unless all violate budgets', () => {
  const names = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`);
  const evaluated = (count: number, budgets: readonly PreemptionBudget[] = []) => {
    const pods = names(count).flatMap((name) => [on(`a-${name}`, name, { labels: { app: 'db' }, cpu: '2' })]);
    return preempted(pod('p', { priority: 1 }), cluster(pods, names(count)), { budgets }).candidates;
  };
  expect([evaluated(90), evaluated(120)]).toEqual([90, 100]);
  expect(evaluated(1_200)).toBe(120);
  expect(evaluated(120, [budget(0)])).toBe(120);
}, 20_000);

describe('the best candidate', () => {
  const candidate = (
    nodeName: string,
    priorities: readonly number[],
    { violations = 0, starts = [] as readonly number[] } = {},
  ): Candidate => ({
    nodeName,
    victims: priorities.map((priority, index) => ({ ...pod(`v${index}`, { priority }), startedAtMs: starts[index] })),
    violations,
  });
  const best = (...candidates: readonly Candidate[]) => {
    const chosen = pickCandidate(candidates, 'u').nodeName;
    expect(pickCandidate(candidates.toReversed(), 'u').nodeName).toBe(chosen);
    return chosen;
  };

  it('violates fewer budgets', () => {
    expect(best(candidate('a', [1], { violations: 1 }), candidate('b', [9, 9]))).toBe('b');
  });
  it('has the lower highest priority', () => {
    expect(best(candidate('a', [5]), candidate('b', [4, 4, 4]))).toBe('b');
  });
  it('has the lower sum of priorities, also of negative ones', () => {
    expect(best(candidate('a', [5, 4]), candidate('b', [5, 3]))).toBe('b');
    expect(best(candidate('a', [-5, -5]), candidate('b', [-5]))).toBe('b');
  });
  it('has the later start of its most important pods', () => {
    const starts = (one: number, other: number) => ({ starts: [one, other] });
    expect(best(candidate('a', [5, 4], starts(1, 0)), candidate('b', [5, 4], starts(2, 0)))).toBe('b');
    expect(best(candidate('a', [5, 5], starts(9, 1)), candidate('b', [5, 5], starts(3, 2)))).toBe('b');
  });
  it('is the same for the same pod, and may be another one for another pod', () => {
    const equal = Array.from({ length: 20 }, (_, index) => candidate(`n${index}`, [1]));
    const chosen = new Set(Array.from({ length: 20 }, (_, index) => pickCandidate(equal, `u${index}`).nodeName));
    expect(chosen.size).toBeGreaterThan(3);
    expect(pickCandidate(equal, 'u1').nodeName).toBe(pickCandidate(equal.toReversed(), 'u1').nodeName);
  });
});
