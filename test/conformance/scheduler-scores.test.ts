/** SC: scores and choice, as the decision record of the binding shows them. */
import { describe, expect, it } from 'vitest';
import type { ScoredNode, ScorePlugin } from '../../functions/scheduler/rule.ts';
import type { KubeDecision } from '../../shared/kinds/types.ts';
import { type NodeParts, type PodParts, ScheduledCluster } from '../support/scheduled-cluster.ts';

const MEBIBYTE = 1_024 * 1_024;
const HOSTNAME = 'kubernetes.io/hostname';

async function cluster(nodes: Readonly<Record<string, NodeParts>>): Promise<ScheduledCluster> {
  const made = new ScheduledCluster();
  for (const [name, parts] of Object.entries(nodes)) await made.node(name, parts);
  return made;
}

/** Places p; the scores of the best three nodes, and their order. */
async function scored(on: ScheduledCluster, parts: PodParts = {}) {
  await on.pod('p', parts);
  await on.settle();
  const path = '/apis/nodekeeper.dev/v1alpha1/decisions?limit=500';
  const { items } = (await on.send('GET', path)) as unknown as { items: KubeDecision[] };
  const record = items.findLast(({ spec }) => spec?.act === 'PodScheduled' && spec.about?.name === 'p');
  const { best } = record!.spec!['inputs'] as { readonly best: readonly ScoredNode[] };
  return {
    of: (plugin: ScorePlugin) =>
      Object.fromEntries(best.map(({ nodeName, scores }) => [nodeName, scores[plugin]]).sort()),
    names: best.map(({ nodeName }) => nodeName),
    reason: record!.spec!.reason ?? '',
  };
}

const sized = (cpu: string, memory: string): NodeParts => ({ allocatable: { cpu, memory } });
const wanting = (cpu: string, memory: string): PodParts => ({ requests: { cpu, memory } });
const image = (name: string, mebibytes: number) => ({
  images: [{ names: [`${name}:latest`], sizeBytes: mebibytes * MEBIBYTE }],
});
const containers = (...images: string[]): PodParts => ({
  spec: { containers: images.map((name, index) => ({ name: `c${index}`, image: name })) },
});

describe('SC scores', () => {
  it('SC-01 LeastAllocated of empty nodes', async () => {
    const on = await cluster({ n1: sized('4', '10Gi'), n2: sized('6', '10Gi') });
    expect((await scored(on, wanting('3', '5Gi'))).of('NodeResourcesFit')).toEqual({ n1: 37, n2: 50 });
  });

  it('SC-03: an explicit request of 0 counts as 0', async () => {
    const on = await cluster({ n1: sized('10', '20Gi'), n2: sized('10', '50Gi') });
    await on.running('a', 'n1', wanting('3', '0'));
    await on.running('b', 'n2', wanting('3', '5Gi'));
    expect((await scored(on, wanting('3', '5Gi'))).of('NodeResourcesFit')).toEqual({ n1: 57, n2: 60 });
  });

  it('SC-05 pods without requests count with defaults', async () => {
    const on = await cluster({ n1: {}, n2: {} });
    for (let index = 0; index < 10; index += 1) await on.running(`a${index}`, 'n1');
    expect((await scored(on)).of('NodeResourcesFit')).toEqual({ n1: 72, n2: 97 });
  });

  it('SC-07 BalancedAllocation of empty nodes', async () => {
    const on = await cluster({ n1: sized('4', '10Gi'), n2: sized('6', '10Gi') });
    expect((await scored(on, wanting('3', '5Gi'))).of('NodeResourcesBalancedAllocation')).toEqual({ n1: 68, n2: 75 });
  });

  it('SC-09 BalancedAllocation compares with and without the pod', async () => {
    const on = await cluster({ n1: sized('10', '20Gi'), n2: sized('10', '50Gi') });
    await on.running('a', 'n1', { requests: { cpu: '3' } });
    await on.running('b', 'n2', wanting('3', '5Gi'));
    expect((await scored(on, wanting('3', '5Gi'))).of('NodeResourcesBalancedAllocation')).toEqual({ n1: 73, n2: 70 });
  });

  it('SC-11 BalancedAllocation of a pod that requests cpu alone', async () => {
    const on = await cluster({ n1: sized('6', '10Gi'), n2: sized('6', '10Gi') });
    await on.running('a', 'n1', { requests: { cpu: '3' } });
    await on.running('b', 'n2', wanting('3', '5Gi'));
    const { of } = await scored(on, { requests: { cpu: '3' } });
    expect(of('NodeResourcesBalancedAllocation')).toEqual({ n1: 62, n2: 62 });
  });

  it('SC-13 ImageLocality: a small image counts 0', async () => {
    const on = await cluster({ n1: image('r/40', 40), n2: image('r/250', 250) });
    expect((await scored(on, containers('r/40', 'r/250'))).of('ImageLocality')).toEqual({ n1: 0, n2: 5 });
  });

  it('SC-15 ImageLocality: a share of the nodes', async () => {
    const on = await cluster({ n1: image('r/4000', 4_000), n2: {}, n3: {} });
    const { of } = await scored(on, containers('r/4000', 'r/other'));
    expect(of('ImageLocality')).toEqual({ n1: 66, n2: 0, n3: 0 });
  });

  it('SC-17 ImageLocality: init containers count', async () => {
    const on = await cluster({ n1: image('r/300', 300), n2: image('r/30', 30) });
    const spec = { ...containers('r/30').spec, initContainers: [{ name: 'i', image: 'r/300' }] };
    expect((await scored(on, { spec })).of('ImageLocality')).toEqual({ n1: 6, n2: 0 });
  });

  it('SC-19 PreferNoSchedule taints', async () => {
    const prefer = (...keys: string[]): NodeParts => ({
      taints: keys.map((key) => ({ key, effect: 'PreferNoSchedule' })),
    });
    const on = await cluster({ n1: {}, n2: prefer('a'), n3: prefer('a', 'b') });
    expect((await scored(on)).of('TaintToleration')).toEqual({ n1: 100, n2: 50, n3: 0 });
  });

  it('SC-21 preferred node affinity', async () => {
    const on = await cluster({
      n1: { labels: { a: '' } },
      n2: { labels: { b: '' } },
      n3: { labels: { a: '', b: '', key: '' } },
    });
    const preference = (...keys: string[]) => ({
      matchExpressions: keys.map((key) => ({ key, operator: 'Exists' as const })),
    });
    const preferredDuringSchedulingIgnoredDuringExecution = [
      { weight: 2, preference: preference('a') },
      { weight: 4, preference: preference('b') },
      { weight: 5, preference: preference('a', 'b', 'key') },
    ];
    const spec = { affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution } } };
    expect((await scored(on, { spec })).of('NodeAffinity')).toEqual({ n1: 18, n2: 36, n3: 100 });
  });

  const soft = (topologyKey: string): PodParts => ({
    labels: { foo: '' },
    spec: {
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey,
          whenUnsatisfiable: 'ScheduleAnyway',
          labelSelector: { matchLabels: { foo: '' } },
        },
      ],
    },
  });

  async function counts(on: ScheduledCluster, numbers: readonly number[]): Promise<void> {
    for (const [index, number] of numbers.entries()) {
      for (let each = 0; each < number; each += 1) {
        await on.running(`e-${index}-${each}`, `n${index + 1}`, { labels: { foo: '' } });
      }
    }
  }

  it('SC-23 soft spread over hosts: the fourth node, with 0, is not among the best three', async () => {
    const on = await cluster({ n1: {}, n2: {}, n3: {}, n4: {} });
    await counts(on, [2, 1, 0, 3]);
    expect((await scored(on, soft(HOSTNAME))).of('PodTopologySpread')).toEqual({ n1: 20, n2: 60, n3: 100 });
  });

  it('SC-25 soft spread ignores a node without the label', async () => {
    const on = await cluster({ n1: {}, n2: {}, n3: {} });
    await on.patchNode('n2', { metadata: { labels: { [HOSTNAME]: null } } });
    await counts(on, [4, 2, 1]);
    expect((await scored(on, soft(HOSTNAME))).of('PodTopologySpread')).toEqual({ n1: 16, n2: 0, n3: 100 });
  });

  it('SC-27 preferred affinity between pods', async () => {
    const on = await cluster({ n1: { labels: { region: 'c' } }, n2: { labels: { region: 'i' } }, n3: {} });
    await on.running('a', 'n1', { labels: { security: 'S1' } });
    await on.running('b', 'n2', { labels: { security: 'S2' } });
    await on.running('c', 'n3', { labels: { security: 'S1' } });
    const podAffinityTerm = { topologyKey: 'region', labelSelector: { matchLabels: { security: 'S1' } } };
    const preferredDuringSchedulingIgnoredDuringExecution = [{ weight: 5, podAffinityTerm }];
    const spec = { affinity: { podAffinity: { preferredDuringSchedulingIgnoredDuringExecution } } };
    expect((await scored(on, { spec })).of('InterPodAffinity')).toEqual({ n1: 100, n2: 0, n3: 0 });
  });

  it('SC-29 the total is the weighted sum', async () => {
    const on = await cluster({ n1: { taints: [{ key: 'a', effect: 'PreferNoSchedule' }] }, n2: {} });
    await on.running('a', 'n2', wanting('2', '4Gi'));
    const { reason } = await scored(on, wanting('1', '2Gi'));
    expect(reason).toContain('best scores: n2 400, n1 150');
    expect(await on.nodeOf('p')).toBe('n2');
  });

  it('SC-31 equal nodes: the largest hash of node and pod', async () => {
    const on = await cluster({ n1: {}, n2: {}, n3: {} });
    const uid = '00000000-0000-4000-8000-000000000001';
    const created = await on.fleet.objects.commit({
      writes: [
        {
          kind: 'create',
          ref: { resource: 'pods', namespace: 'default', name: 'p' },
          object: {
            apiVersion: 'v1',
            kind: 'Pod',
            metadata: { name: 'p', namespace: 'default', uid, creationTimestamp: '2026-01-01T00:00:00Z' },
            spec: { containers: [{ name: 'c', image: 'i' }], schedulerName: 'default-scheduler' },
            status: { phase: 'Pending' },
          },
        },
      ],
    });
    expect(created.kind).toBe('committed');
    await on.settle();
    expect(await on.nodeOf('p')).toBe('n3');
  });
});
