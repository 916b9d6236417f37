/** PR: preemption, by the API, the streams and the scheduler. Nodes have 500m and 500Mi. */
import { describe, expect, it } from 'vitest';
import type { KubeDecision } from '../../shared/kinds/types.ts';
import { type NodeParts, type PodParts, ScheduledCluster } from '../support/scheduled-cluster.ts';

const NEG = -100;
const LOW = 0;
const MID = 100;
const HIGH = 1_000;

const sized = (amount: number, priority: number, more: PodParts = {}): PodParts => ({
  ...more,
  priority,
  requests: { cpu: `${amount}m`, memory: `${amount}Mi` },
});
const SMALL = 100;
const MEDIUM = 200;
const LARGE = 300;
const VERY_LARGE = 500;
/** Started so many seconds after the start. */
const started = (seconds: number): PodParts => ({
  status: { phase: 'Running', startTime: `2026-01-01T00:00:0${seconds}Z` },
});

async function cluster(nodes: Readonly<Record<string, NodeParts>>): Promise<ScheduledCluster> {
  const made = new ScheduledCluster();
  for (const [name, parts] of Object.entries(nodes)) {
    await made.node(name, { ...parts, allocatable: { cpu: '500m', memory: '500Mi', ...parts.allocatable } });
  }
  return made;
}

interface Recorded {
  readonly nodeName: string;
  readonly violations: number;
  readonly victims: readonly { readonly key: string }[];
}

/** The candidates of p's preemption, the chosen one first: `node: victims`, and violations. */
async function candidates(on: ScheduledCluster): Promise<{ texts: string[]; violations: number[] }> {
  const path = '/apis/nodekeeper.dev/v1alpha1/decisions?limit=500';
  const { items } = (await on.send('GET', path)) as unknown as { items: KubeDecision[] };
  const record = items.find(({ spec }) => spec?.act === 'PodPreempting' && spec.about?.name === 'p');
  const list = (record?.spec?.['inputs'] as { candidates: Recorded[] } | undefined)?.candidates ?? [];
  return {
    texts: list.map(({ nodeName, victims }) => `${nodeName}: ${victims.map(({ key }) => key.split('/')[1]).join(' ')}`),
    violations: list.map(({ violations }) => violations),
  };
}

async function cycle(on: ScheduledCluster, parts: PodParts): Promise<void> {
  await on.pod('p', parts);
  await on.settle();
  expect(await on.nodeOf('p')).toBe('');
}

/** Names of terminating pods. */
async function terminating(on: ScheduledCluster): Promise<string[]> {
  const { items } = (await on.send('GET', '/api/v1/namespaces/default/pods')) as unknown as {
    items: { metadata: { name: string; deletionTimestamp?: string } }[];
  };
  return items.flatMap(({ metadata }) => (metadata.deletionTimestamp === undefined ? [] : [metadata.name]));
}

const nominated = async (on: ScheduledCluster, name = 'p') => (await on.get(name)).status?.nominatedNodeName;

describe('PR preemption', () => {
  it('PR-01 the pod of lower priority is deleted, and p is nominated', async () => {
    const on = await cluster({ n1: { allocatable: { pods: '1' } } });
    await on.running('low', 'n1', { priority: LOW });
    await cycle(on, { priority: HIGH });
    expect(await terminating(on)).toEqual(['low']);
    expect(await nominated(on)).toBe('n1');
    expect((await on.scheduled('p'))?.message).toBe('0/1 nodes are available: 1 Too many pods.');
    const { status } = await on.get('low');
    expect(status?.conditions?.find(({ type }) => type === 'DisruptionTarget')).toMatchObject({
      status: 'True',
      reason: 'PreemptionByScheduler',
      message: 'default-scheduler: preempting to accommodate a higher priority pod',
    });
    const [event] = await on.events('Preempted');
    const { uid } = (await on.get('p')).metadata;
    expect(event).toMatchObject({ type: 'Normal', message: `Preempted by pod ${uid} on node n1` });
    await on.remove('low');
    await on.settle();
    await on.at(2);
    expect(await on.nodeOf('p')).toBe('n1');
    expect(await nominated(on)).toBeUndefined();
  });

  it('PR-03: a taint cannot be preempted away', async () => {
    const taints = [{ key: 'k', value: 'v', effect: 'NoSchedule' }];
    const on = await cluster({ n1: { allocatable: { pods: '1' }, taints } });
    await on.running('low', 'n1', { priority: LOW });
    await cycle(on, { priority: HIGH });
    expect(await terminating(on)).toEqual([]);
    expect(await on.preemptionText('p')).toBe('0/1 nodes are available: 1 Preemption is not helpful for scheduling.');
  });

  it('PR-05 nor a request beyond what the nodes offer', async () => {
    const small = { allocatable: { cpu: '200m', memory: '200Mi' } };
    const on = await cluster({ n1: small, n2: small });
    await on.running('a', 'n1', sized(MEDIUM, LOW));
    await on.running('b', 'n2', sized(MEDIUM, LOW));
    await cycle(on, sized(LARGE, HIGH));
    expect(await terminating(on)).toEqual([]);
    expect(await on.preemptionText('p')).toBe('0/2 nodes are available: 2 Preemption is not helpful for scheduling.');
  });

  it('PR-07 of equal candidates always the same is chosen', async () => {
    const on = await cluster({ n1: {}, n2: {} });
    await on.running('a', 'n1', sized(LARGE, MID));
    await on.running('b', 'n2', sized(LARGE, MID));
    await cycle(on, sized(LARGE, HIGH));
    const { texts } = await candidates(on);
    expect(texts.toSorted()).toEqual(['n1: a', 'n2: b']);
    expect(await terminating(on)).toEqual([texts[0]!.split(' ')[1]]);
  });

  it('PR-09: a pod beside which p fits stays', async () => {
    const on = await cluster({ n1: {}, n2: {} });
    await on.running('small', 'n1', sized(SMALL, LOW));
    await on.running('a', 'n1', sized(LARGE, MID));
    await on.running('b', 'n2', sized(LARGE, MID));
    await cycle(on, sized(LARGE, HIGH));
    expect((await candidates(on)).texts.toSorted()).toEqual(['n1: a', 'n2: b']);
  });

  it('PR-11 of equal priority the older one is put back first', async () => {
    const on = await cluster({ n1: {} });
    await on.running('a', 'n1', sized(SMALL, LOW, started(5)));
    await on.running('b', 'n1', sized(SMALL, LOW, started(4)));
    await on.running('c', 'n1', sized(MEDIUM, MID, started(3)));
    await on.running('d', 'n1', sized(SMALL, HIGH));
    await cycle(on, sized(LARGE, HIGH));
    expect((await candidates(on)).texts).toEqual(['n1: c a']);
  });

  it('PR-13 pods are removed for a spread constraint', async () => {
    const zone = (name: string): NodeParts => ({ zone: name });
    const on = await cluster({ n1: zone('z1'), n2: zone('z1'), n3: zone('z2') });
    const labels = { foo: '' };
    await on.running('a', 'n1', { priority: MID, labels });
    await on.running('b', 'n1', { priority: LOW, labels });
    await on.running('c', 'n2', { priority: LOW, labels });
    await on.running('d', 'n3', { priority: HIGH, labels });
    await on.running('e', 'n3', { priority: HIGH, labels });
    const topologySpreadConstraints = ['topology.kubernetes.io/zone', 'kubernetes.io/hostname'].map((topologyKey) => ({
      maxSkew: 1,
      topologyKey,
      whenUnsatisfiable: 'DoNotSchedule' as const,
      labelSelector: { matchLabels: labels },
    }));
    await cycle(on, { priority: HIGH, labels, spec: { topologySpreadConstraints } });
    expect((await candidates(on)).texts.toSorted()).toEqual(['n1: b', 'n2: c']);
  });

  it('PR-15: a pod in disruptedPods counts as disrupted already', async () => {
    const on = await cluster({ n1: {} });
    const ready = {
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
      labels: { app: 'foo' },
    };
    await on.running('a', 'n1', sized(MEDIUM, MID, ready as PodParts));
    await on.running('b', 'n1', sized(MEDIUM, MID, ready as PodParts));
    await on.fleet.objects.commit({
      writes: [
        {
          kind: 'create',
          ref: { resource: 'poddisruptionbudgets', namespace: 'default', name: 'foo' },
          object: {
            apiVersion: 'policy/v1',
            kind: 'PodDisruptionBudget',
            metadata: { name: 'foo', namespace: 'default', uid: 'foo' },
            spec: { minAvailable: 1, selector: { matchLabels: { app: 'foo' } } },
            status: { disruptedPods: { b: '2026-01-01T00:00:00Z' } },
          },
        },
      ],
    });
    await cycle(on, sized(VERY_LARGE, HIGH));
    expect(await candidates(on)).toEqual({ texts: ['n1: a b'], violations: [0] });
  });

  it('PR-17 the lowest of the highest priorities', async () => {
    const on = await cluster({ n1: {}, n2: {}, n3: {} });
    await on.running('a1', 'n1', sized(MEDIUM, MID));
    await on.running('a2', 'n1', sized(LARGE, MID));
    await on.running('b1', 'n2', sized(MEDIUM, MID));
    await on.running('b2', 'n2', sized(MEDIUM, LOW));
    await on.running('c1', 'n3', sized(MEDIUM, LOW));
    await on.running('c2', 'n3', sized(MEDIUM, LOW));
    await cycle(on, sized(VERY_LARGE, HIGH));
    expect(await nominated(on)).toBe('n3');
  });

  it('PR-19 the smallest sum of priorities, in which each victim counts', async () => {
    const on = await cluster({ n1: {}, n2: {}, n3: {} });
    for (const [index, priority] of [MID, NEG, MID, NEG].entries()) {
      await on.running(`a${index}`, 'n1', sized(SMALL, priority));
    }
    await on.running('b0', 'n2', sized(LARGE, MID));
    await on.running('b1', 'n2', sized(MEDIUM, NEG));
    await on.running('c0', 'n3', sized(MEDIUM, MID));
    await on.running('c1', 'n3', sized(SMALL, NEG));
    await on.running('c2', 'n3', sized(SMALL, LOW));
    await cycle(on, sized(VERY_LARGE, HIGH));
    expect(await nominated(on)).toBe('n2');
  });

  it('PR-21 the latest start', async () => {
    const on = await cluster({ n1: {}, n2: {}, n3: {} });
    for (const [name, seconds] of Object.entries({ n1: 2, n2: 3, n3: 1 })) {
      await on.running(`${name}-a`, name, sized(MEDIUM, MID, started(seconds)));
      await on.running(`${name}-b`, name, sized(MEDIUM, MID, started(seconds)));
    }
    await cycle(on, sized(VERY_LARGE, HIGH));
    expect(await nominated(on)).toBe('n2');
  });

  it('PR-23 of the victims of the highest priority', async () => {
    const on = await cluster({ n1: {}, n2: {}, n3: {} });
    for (const [name, [mid, low]] of Object.entries({ n1: [2, 4], n2: [6, 1], n3: [5, 3] })) {
      await on.running(`${name}-mid`, name, sized(MEDIUM, MID, started(mid!)));
      await on.running(`${name}-low`, name, sized(MEDIUM, LOW, started(low!)));
    }
    await cycle(on, sized(VERY_LARGE, HIGH));
    expect(await nominated(on)).toBe('n2');
  });

  it('PR-25 preemptionPolicy Never', async () => {
    const on = await cluster({ n1: { allocatable: { pods: '1' } } });
    await on.running('low', 'n1', { priority: LOW });
    const path = '/apis/scheduling.k8s.io/v1/priorityclasses';
    await on.send('POST', path, { body: { metadata: { name: 'never' }, value: HIGH, preemptionPolicy: 'Never' } });
    await cycle(on, { spec: { priorityClassName: 'never' } });
    expect(await terminating(on)).toEqual([]);
    expect((await on.scheduled('p'))?.message).toMatch(/preemption: not eligible due to preemptionPolicy=Never\.$/);
  });

  it('PR-27: a terminating pod without DisruptionTarget does not hinder another preemption', async () => {
    const on = await cluster({ n1: { allocatable: { pods: '1' } }, n2: { allocatable: { pods: '1' } } });
    await on.running('a', 'n1', { priority: LOW });
    await on.send('DELETE', '/api/v1/namespaces/default/pods/a');
    await on.running('b', 'n2', { priority: MID });
    await on.pod('p', { priority: HIGH, spec: { schedulingGates: [{ name: 'wait' }] } });
    await on.status('p', { nominatedNodeName: 'n1' });
    await on.settle();
    await on.send('PATCH', '/api/v1/namespaces/default/pods/p', {
      body: { spec: { schedulingGates: null } },
      contentType: 'application/merge-patch+json',
    });
    await on.settle();
    expect((await candidates(on)).texts.length).toBeGreaterThan(0);
  });

  it('PR-29 what a victim frees is reserved for p', async () => {
    const on = await cluster({ n1: {} });
    await on.running('victim', 'n1', sized(VERY_LARGE, LOW));
    await cycle(on, sized(LARGE, HIGH));
    await on.pod('q', sized(LARGE, MID));
    await on.settle();
    await on.remove('victim');
    // q is due before p.
    on.fleet.at(0.1);
    await on.settle();
    expect(await on.nodeOf('q')).toBe('');
    await on.at(3);
    expect([await on.nodeOf('p'), await on.nodeOf('q')]).toEqual(['n1', '']);
  });

  it('PR-31: a nominated pod of lower priority loses its nomination', async () => {
    const on = await cluster({ n1: {} });
    await on.running('victim', 'n1', sized(VERY_LARGE, LOW));
    await on.pod('q', sized(LARGE, MID));
    await on.settle();
    expect(await nominated(on, 'q')).toBe('n1');
    await on.remove('victim');
    await on.running('other', 'n1', sized(VERY_LARGE, LOW));
    await on.pod('p', sized(VERY_LARGE, HIGH));
    await on.settle();
    expect(await nominated(on)).toBe('n1');
    expect(await nominated(on, 'q')).toBeUndefined();
  });
});
