/** What becomes of a group of bindings, for each answer of the tables. */
import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { KubeNode, KubePod } from '../../shared/kinds/types.ts';
import { Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import { schedulableNode, schedulablePod } from '../../shared/scheduling/world.rule.ts';
import { StoreFault } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import type { CommitOutcome } from '../../shared/store/object-store.ts';
import { workDependencies } from '../../shared/ticks/dependencies.ts';
import { type ScriptedOutcome, scriptedCommits } from '../../test/support/scripted-commits.ts';
import { bindGroup, type Placement } from './bind.ts';
import type { ClusterCopy } from './cluster-copy.ts';
import type { Fit } from './rule.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const LABELS = { app: 'web' };

interface GroupParts {
  readonly pods?: number;
  /** Of the pod at this position: as it is stored; undefined: it is not. */
  readonly stored?: Readonly<Record<number, Partial<KubePod> | undefined>>;
  /** Nodes that do not exist, with a pod that the anti-affinity of all others is about. */
  readonly missing?: number;
  /** The pod at this position is placed on a node that does not exist. */
  readonly onMissing?: number;
}

/** Pods p0, p1, … in turn on the nodes n0 and n1. */
function groupOf({ pods = 6, stored = {}, missing = 0, onMissing }: GroupParts = {}) {
  const snapshot = new Snapshot();
  const pending = new Map<string, KubePod>();
  const term = { labelSelector: { matchLabels: LABELS }, topologyKey: 'kubernetes.io/hostname' };
  const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } };
  for (const name of ['n0', 'n1']) {
    const metadata = { name, uid: name, resourceVersion: '7', labels: { 'kubernetes.io/hostname': name } };
    snapshot.setNode(schedulableNode({ metadata, status: { allocatable: { cpu: '4', pods: '9' } } } as KubeNode));
  }
  const podOf = (name: string, spec: object): KubePod => ({
    kind: 'Pod',
    metadata: { namespace: 'd', name, uid: `uid-${name}`, resourceVersion: '5', labels: LABELS },
    spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
  });
  for (let index = 0; index < missing; index += 1) {
    snapshot.setPod(schedulablePod(podOf(`on${index}`, { nodeName: `gone${index}` })));
  }
  const placements = Array.from({ length: pods }, (_, index): Placement => {
    const object = podOf(`p${index}`, missing > 0 ? { affinity } : {});
    const pod = schedulablePod(object);
    snapshot.setPod(pod);
    if (!(index in stored)) pending.set(pod.key, object);
    else if (stored[index] !== undefined) pending.set(pod.key, { ...object, ...stored[index] });
    const nodeName = index === onMissing ? 'gone' : `n${index % 2}`;
    const fit: Fit = { kind: 'fits', nodeName, feasible: 1, examined: 2, best: [], rejections: new Map() };
    return { pod, fit, claims: [], queue: { queuedAtMs: NOW_MS, attempt: 1 } };
  });
  const seen = { bound: [] as string[], advanced: [] as string[] };
  const copy = {
    snapshot,
    pending,
    order: 3,
    useOf: (nodeName: string) => (nodeName === 'n0' ? 10 : 11),
    bound: ({ metadata, spec }: KubePod) => void seen.bound.push(`${metadata.name} ${spec?.nodeName}`),
    advanced: (names: Iterable<string>) => void seen.advanced.push(...names),
  };
  return { placements, copy: copy as unknown as ClusterCopy, seen };
}

async function bind(outcomes: readonly (ScriptedOutcome | Error)[], parts: GroupParts = {}) {
  const { placements, copy, seen } = groupOf(parts);
  const faults = outcomes.filter((each) => each instanceof Error);
  const { objects, commits } = scriptedCommits(outcomes.flatMap((each) => (each instanceof Error ? [] : [each])));
  const silent = () => {};
  const dependencies = {
    ...workDependencies({
      items: memoryItemStore(),
      clock: { nowMs: () => NOW_MS },
      random: { uuid: () => 'e', fraction: () => 0 },
      policy: defaultPolicy,
      log: { debug: silent, info: silent, warn: silent, error: silent },
      meter: { add: silent },
    }),
    objects: {
      ...objects,
      async commit(commit: Parameters<typeof objects.commit>[0]): Promise<CommitOutcome> {
        const fault = faults.shift();
        if (fault !== undefined) throw fault;
        return objects.commit(commit);
      },
    },
  };
  const outcome = await bindGroup(dependencies, copy, placements);
  const names = (some: readonly Placement[]) => some.map(({ pod }) => pod.name).join(' ');
  return {
    outcome: {
      bound: names(outcome.bound),
      refused: names(outcome.refused),
      unwritable: names(outcome.unwritable),
      cause: outcome.cause,
      isStale: outcome.isStale,
    },
    /** Pods of each commit. */
    tried: commits.map(({ writes }) => writes.length / 2),
    commits,
    seen,
  };
}

const ALL = 'p0 p1 p2 p3 p4 p5';
const NOTHING = { bound: '', refused: ALL, unwritable: '', cause: undefined, isStale: true };
const TOO_LARGE = (index: number): ScriptedOutcome => ({ kind: 'tooLarge', index });
const CONFLICT = (index: number): ScriptedOutcome => ({ kind: 'conflict', index });
const EXTRA = (index: number): ScriptedOutcome => ({ kind: 'extraRefused', index });

describe('a group of bindings', () => {
  it('is one transaction, which the copy adopts', async () => {
    const { outcome, tried, seen, commits } = await bind(['committed']);
    expect(outcome).toEqual({ ...NOTHING, bound: ALL, refused: '', isStale: false });
    expect(tried).toEqual([6]);
    expect(seen.bound).toEqual(['p0 n0', 'p1 n1', 'p2 n0', 'p3 n1', 'p4 n0', 'p5 n1']);
    expect(seen.advanced).toEqual(['n0', 'n1']);
    const [order, ...guards] = commits[0]!.extra ?? [];
    expect(order).toMatchObject({ key: { sk: 'order' } });
    expect(JSON.stringify(order)).toContain('3');
    expect(guards.slice(0, 4).map(({ key }) => key.sk)).toEqual(['n0', 'n0', 'n1', 'n1']);
    expect(guards.slice(0, 4).map(({ when }) => JSON.stringify(when).match(/"value":(\d+)/)?.[1])).toEqual([
      '10',
      '7',
      '11',
      '7',
    ]);
  });

  it.each<[string, ScriptedOutcome | Error, object]>([
    ['another transaction is in progress', { kind: 'contended' }, { cause: 'contention' }],
    ['the outcome is not known', new StoreFault('timeout', 'late', { retryable: true }), { cause: 'contention' }],
    ['another pass has bound a pod', EXTRA(0), { cause: 'order' }],
    ['the first node has another version', EXTRA(1), { cause: 'node' }],
    ['the last node has another version', EXTRA(4), { cause: 'node' }],
    ['the first pod has another version', CONFLICT(0), { cause: 'pod' }],
    ['the first pod was bound before', CONFLICT(1), { cause: 'pod' }],
  ])('is not repeated when %s', async (_, answer, expected) => {
    const { outcome, tried, seen } = await bind([answer]);
    expect(outcome).toEqual({ ...NOTHING, ...expected });
    expect(tried.length).toBeLessThanOrEqual(1);
    expect(seen).toEqual({ bound: [], advanced: [] });
  });

  it.each([new StoreFault('rejected', 'bad', { retryable: false }), new TypeError('a bug')])(
    'rejects with a fault that a repetition does not repair: %s',
    async (fault) => {
      await expect(bind([fault])).rejects.toBe(fault);
    },
  );

  it.each<[string, ScriptedOutcome, number]>([
    ['before a pod with another version', CONFLICT(2), 1],
    ['before a pod that was bound before', CONFLICT(9), 4],
    ['before a pod that is too large', TOO_LARGE(6), 3],
    ['the first, if that one may be too large', TOO_LARGE(1), 1],
    ['half of those that are too many', { kind: 'overfull' }, 3],
  ])('is bound in part: %s', async (_, answer, count) => {
    const { outcome, tried, seen } = await bind([answer, 'committed']);
    const [bound, refused] = [ALL.split(' ').slice(0, count), ALL.split(' ').slice(count)];
    expect(outcome).toEqual({ ...NOTHING, bound: bound.join(' '), refused: refused.join(' ') });
    expect(tried).toEqual([6, count]);
    expect(seen.bound).toHaveLength(count);
  });

  it.each([TOO_LARGE(0), { kind: 'overfull' } as const])('reports a single pod that is %j', async (answer) => {
    const { outcome, commits } = await bind([answer, answer, answer, 'committed']);
    expect(outcome).toEqual({ ...NOTHING, refused: 'p1 p2 p3 p4 p5', unwritable: 'p0' });
    expect(commits.at(-2)?.writes.map(({ ref }) => ref.resource)).toEqual(['pods', 'events']);
    expect(commits.at(-1)?.writes.map(({ ref }) => ref.resource)).toEqual(['events']);
  });

  const bound: Partial<KubePod> = { spec: { containers: [], nodeName: 'other' } };
  const replaced: Partial<KubePod> = { metadata: { namespace: 'd', name: 'p2', uid: 'other' } };
  it.each<[string, GroupParts]>([
    ['no longer waits', { stored: { 2: undefined } }],
    ['was replaced by another one', { stored: { 2: replaced } }],
    ['is bound', { stored: { 2: bound } }],
    ['was placed on a node that no longer exists', { onMissing: 2 }],
  ])('ends before a pod that %s', async (_, parts) => {
    const { outcome, tried } = await bind(['committed'], parts);
    expect(outcome).toEqual({ ...NOTHING, bound: 'p0 p1', refused: 'p2 p3 p4 p5' });
    expect(tried).toEqual([2]);
  });

  it('writes nothing when its first pod no longer waits', async () => {
    const { outcome, tried } = await bind([], { stored: { 0: undefined } });
    expect(outcome).toEqual({ ...NOTHING, cause: 'pod' });
    expect(tried).toEqual([]);
  });

  it('has conditions on at most 15 missing nodes, and one pod alone on at most 80', async () => {
    const absent = async (missing: number) => {
      const { commits, tried } = await bind(['committed'], { missing, pods: 2 });
      const gone = (commits[0]?.extra ?? []).filter(({ key }) => key.sk.startsWith('gone'));
      return [tried[0], gone.length];
    };
    expect(await absent(15)).toEqual([2, 15]);
    expect(await absent(16)).toEqual([1, 16]);
    expect(await absent(81)).toEqual([1, 80]);
  });
});
