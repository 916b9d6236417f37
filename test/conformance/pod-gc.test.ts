/** Area GC: pod garbage collection. */
import { describe, expect, it } from 'vitest';
import { withDisruption } from '../../shared/fleet/eviction.rule.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import {
  type CollectableNode,
  type CollectablePod,
  type LiveRead,
  type PodRemoval,
  podRemovals,
  settleOrphans,
  terminatedRemovals,
  unscheduledRemovals,
  watchOrphans,
} from '../../shared/kinds/pods/collection.rule.ts';
import type { Taint } from '../../shared/kubernetes/kubernetes.ts';

const HOUR_MS = 3_600_000;

/** Pods one hour apart, in the order listed: name, phase, and what else is said. */
function pods(...list: [name: string, phase: string, over?: Partial<CollectablePod>][]): CollectablePod[] {
  return list.map(([name, phase, over], index) => ({
    namespace: 'default',
    name,
    uid: `uid-${name}`,
    nodeName: 'node',
    phase,
    reason: undefined,
    createdAtMs: index * HOUR_MS,
    terminating: false,
    ...over,
  }));
}

const names = (removals: readonly PodRemoval[]): string[] => removals.map(({ name }) => name);

class Cluster {
  nowMs = 0;
  pods: CollectablePod[];
  nodes: string[];
  /** What a live read says of a name that is not listed. */
  live: LiveRead = 'missing';
  quarantine: ReadonlyMap<string, number> = new Map();
  patched: string[] = [];
  deleted: string[] = [];

  constructor(pods: CollectablePod[], nodes: string[]) {
    this.pods = pods;
    this.nodes = nodes;
  }

  pass(options: { markFailedFails?: boolean; nodes?: CollectableNode[] } = {}): void {
    const nodeNames = new Set(this.nodes);
    const watched = watchOrphans(
      { pods: this.pods, nodeNames, quarantine: this.quarantine },
      this.nowMs,
      defaultPolicy,
    );
    const reads = new Map(watched.ripe.map((name): [string, LiveRead] => [name, this.live]));
    const settled = settleOrphans(watched.quarantine, reads, this.nowMs);
    this.quarantine = settled.quarantine;
    const world = { pods: this.pods, nodes: options.nodes ?? [], missing: settled.missing };
    for (const removal of podRemovals(world, { terminatedPodGcThreshold: 0 })) {
      for (const step of removal.steps) {
        if (step.kind === 'markFailed') {
          if (options.markFailedFails === true) break;
          this.patched.push(removal.name);
        } else {
          this.deleted.push(removal.name);
          this.pods = this.pods.filter((pod) => pod.uid !== removal.podUid);
        }
      }
    }
  }

  passes(...atSeconds: number[]): this {
    for (const seconds of atSeconds) {
      this.nowMs = seconds * 1_000;
      this.pass();
    }
    return this;
  }
}

describe('terminated pods', () => {
  it('GC-02 a threshold of 0 switches it off', () => {
    expect(terminatedRemovals(pods(['a', 'Failed'], ['b', 'Succeeded']), 0)).toEqual([]);
  });

  it('GC-04 deletes the oldest', () => {
    expect(names(terminatedRemovals(pods(['a', 'Failed'], ['b', 'Succeeded']), 1))).toEqual(['a']);
  });

  it('GC-06 deletes an evicted pod first', () => {
    const three = pods(['a', 'Failed'], ['b', 'Succeeded'], ['c', 'Failed', { reason: 'Evicted' }]);
    expect(names(terminatedRemovals(three, 1))).toEqual(['c', 'a']);
  });

  it('GC-28 of two evicted and one older pod, one too many, deletes the older evicted one', () => {
    const three = pods(
      ['t1', 'Succeeded'],
      ['e1', 'Failed', { reason: 'Evicted' }],
      ['e2', 'Failed', { reason: 'Evicted' }],
    );
    expect(names(terminatedRemovals(three, 2))).toEqual(['e1']);
  });
});

describe('orphaned pods', () => {
  it('GC-08 pods of known nodes stay, and nothing is in quarantine', () => {
    const cluster = new Cluster(
      pods(
        ['a', 'Running', { nodeName: 'existing1' }],
        ['b', 'Failed', { nodeName: 'existing1' }],
        ['c', 'Succeeded', { nodeName: 'existing2' }],
      ),
      ['existing1', 'existing2'],
    ).passes(0, 80);
    expect([cluster.deleted, cluster.quarantine.size]).toEqual([[], 0]);
  });

  it('GC-10 finished pods of a missing node go without a patch', () => {
    const cluster = new Cluster(pods(['a', 'Failed'], ['b', 'Succeeded']), []).passes(0);
    expect(cluster.quarantine.size).toBe(1);
    cluster.passes(80);
    expect([cluster.deleted, cluster.patched]).toEqual([['a', 'b'], []]);
  });

  it('GC-12 deletes nothing before the quarantine is over', () => {
    expect(new Cluster(pods(['a', 'Failed']), []).passes(0, 20).deleted).toEqual([]);
  });

  it('GC-14 only pods of the missing node go, the running one after a patch', () => {
    const cluster = new Cluster(
      pods(
        ['a', 'Failed', { nodeName: 'deleted' }],
        ['b', 'Failed', { nodeName: 'existing' }],
        ['c', 'Succeeded', { nodeName: 'deleted' }],
        ['d', 'Running', { nodeName: 'deleted' }],
      ),
      ['existing'],
    ).passes(0, 80);
    expect([cluster.deleted, cluster.patched]).toEqual([['a', 'c', 'd'], ['d']]);
  });

  it('GC-16 deletes nothing when the node is listed after the quarantine', () => {
    const cluster = new Cluster(pods(['a', 'Failed']), []).passes(0);
    cluster.nodes = ['node'];
    expect(cluster.passes(80).deleted).toEqual([]);
  });

  it('GC-18 the quarantine starts when the node is first missed', () => {
    const cluster = new Cluster(pods(['a', 'Failed']), ['node']).passes(0);
    cluster.nodes = [];
    expect(cluster.passes(80).deleted).toEqual([]);
    expect(cluster.quarantine.get('node')).toBe(80_000);
  });

  it('GC-24 a running orphan is Failed with its condition beside Ready, then deleted without grace', () => {
    const [removal] = podRemovals(
      { pods: pods(['a', 'Running']), nodes: [], missing: new Set(['node']) },
      { terminatedPodGcThreshold: 0 },
    );
    const [first, second] = removal?.steps ?? [];
    expect(first).toEqual({
      kind: 'markFailed',
      condition: {
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'DeletionByPodGC',
        message: 'PodGC: node no longer exists',
      },
    });
    expect(second).toEqual({ kind: 'delete', gracePeriodSeconds: 0 });
    if (first?.kind !== 'markFailed' || first.condition === undefined) throw new Error('no condition');
    expect(withDisruption([{ type: 'Ready', status: 'True' }], first.condition, 0)?.map(({ type }) => type)).toEqual([
      'Ready',
      'DisruptionTarget',
    ]);
  });

  it('GC-26 deletes a pod with a failed patch not in this pass, but in the next', () => {
    const cluster = new Cluster(pods(['a', 'Running', { nodeName: '', terminating: true }]), []);
    cluster.pass({ markFailedFails: true });
    expect(cluster.deleted).toEqual([]);
    cluster.pass();
    expect(cluster.deleted).toEqual(['a']);
  });
});

describe('terminating pods', () => {
  it('GC-20 pods that are not terminating, or bound, are not unscheduled terminating ones', () => {
    const three = pods(
      ['a', 'Failed', { nodeName: undefined }],
      ['b', 'Succeeded'],
      ['c', 'Running', { terminating: true }],
    );
    expect(unscheduledRemovals(three)).toEqual([]);
  });

  it('GC-22 terminating pods on not ready nodes with the out-of-service taint of any effect and value go', () => {
    const outOfService = (effect: Taint['effect'], value?: string): Taint => ({
      key: 'node.kubernetes.io/out-of-service',
      effect,
      ...(value === undefined ? {} : { value }),
    });
    const nodes: CollectableNode[] = [
      { name: 'worker-0', ready: 'False', taints: [outOfService('NoExecute')] },
      { name: 'worker-1', ready: 'False', taints: [] },
      { name: 'worker-2', ready: 'True', taints: [] },
      { name: 'worker-3', ready: 'False', taints: [outOfService('NoSchedule')] },
      { name: 'worker-4', ready: 'False', taints: [outOfService('PreferNoSchedule')] },
      { name: 'worker-5', ready: 'False', taints: [outOfService('NoExecute', 'any-value')] },
    ];
    const cluster = new Cluster(
      nodes.flatMap(({ name: nodeName }, index) =>
        pods(
          [`a${index + 1}`, 'Running', { nodeName }],
          [`b${index + 1}`, 'Running', { nodeName, terminating: true }],
          [`c${index + 1}`, 'Pending', { nodeName }],
        ),
      ),
      nodes.map(({ name }) => name),
    );
    cluster.pass({ nodes });
    expect(cluster.patched).toEqual(['b1', 'b4', 'b5', 'b6']);
    expect(cluster.deleted).toEqual(['b1', 'b4', 'b5', 'b6']);
  });
});
