/** Terminating pods: where they do not count, as upstream, and where they keep their place until they are removed. */
import { describe, expect, it } from 'vitest';
import type { KubeNode, KubePod, PodSpec } from '../../shared/kinds/types.ts';
import { mayHelp } from '../../shared/scheduling/queue.rule.ts';
import { Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import { isPending, type SchedulablePod, schedulableNode, schedulablePod } from '../../shared/scheduling/world.rule.ts';
import { requiredCounts } from './pod-affinity.rule.ts';
import { hardSpreadCounts, spreadScores } from './topology-spread.rule.ts';

const labels = { app: 'web' };
const labelSelector = { matchLabels: labels };
const topologyKey = 'kubernetes.io/hostname';
const spread = (whenUnsatisfiable: string): PodSpec =>
  ({ topologySpreadConstraints: [{ maxSkew: 1, topologyKey, whenUnsatisfiable, labelSelector }] }) as PodSpec;
const affinity = { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, labelSelector }] } };

function pod(name: string, { spec = {}, isTerminating = false }: { spec?: PodSpec; isTerminating?: boolean } = {}) {
  const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'web', controller: true }];
  const deletion = isTerminating ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {};
  const metadata = { name, namespace: 'default', uid: name, labels, ownerReferences, ...deletion };
  return schedulablePod({ metadata, spec: { containers: [{ name: 'c' }], ...spec } } as KubePod);
}

function world(bound: SchedulablePod): Snapshot {
  const snapshot = new Snapshot();
  for (const name of ['n1', 'n2']) {
    const metadata = { name, uid: name, labels: { [topologyKey]: name } };
    const status = { conditions: [{ type: 'Ready', status: 'True' }], allocatable: { cpu: '4', pods: '10' } };
    snapshot.setNode(schedulableNode({ metadata, status } as KubeNode));
  }
  snapshot.setPod(bound);
  return snapshot;
}

const scores = (spec: PodSpec, snapshot: Snapshot) =>
  Object.fromEntries(
    spreadScores(pod('waiting', { spec }), [...snapshot.nodes.values()], { snapshot, usesDefaults: true }) ?? [],
  );

describe.each([false, true])('a pod on n1, terminating: %s', (isTerminating) => {
  const bound = pod('bound', { spec: { nodeName: 'n1' }, isTerminating });
  const snapshot = world(bound);
  const counted = isTerminating ? 0 : 1;

  it('counts for a hard spread constraint unless it terminates', () => {
    const [counts] = hardSpreadCounts(pod('waiting', { spec: spread('DoNotSchedule') }), snapshot);
    expect(counts?.get('n1') ?? 0).toBe(counted);
  });

  it.each([
    ['a soft spread constraint', spread('ScheduleAnyway')],
    ['the default spreading', {}],
  ])('counts in the score of %s unless it terminates', (_name, spec) => {
    const { n1 = 0, n2 = 0 } = scores(spec, snapshot);
    expect(n1 < n2).toBe(!isTerminating);
  });

  it('counts for pod affinity, and occupies its node, until it is removed', () => {
    const [counts] = requiredCounts(pod('waiting', { spec: { affinity } as PodSpec }), snapshot);
    expect(counts?.get('n1')).toBe(1);
    expect(snapshot.nodes.get('n1')?.pods.size).toBe(1);
  });

  it('may help a pod with a hard spread constraint when it begins to terminate, and not when it is removed after', () => {
    const waiting = pod('waiting', { spec: spread('DoNotSchedule') });
    const helps = (before: SchedulablePod, after: SchedulablePod | undefined) =>
      mayHelp(waiting, ['PodTopologySpread'], { change: { kind: 'pod', before, after }, namespaces: new Map() });
    expect(helps(pod('bound', { spec: { nodeName: 'n1' } }), bound)).toBe(isTerminating);
    expect(helps(bound, undefined)).toBe(!isTerminating);
  });

  it('is pending without a node unless it terminates', () => {
    expect(isPending(pod('waiting', { isTerminating }))).toBe(!isTerminating);
  });
});
