/** Statements of Kubernetes' documentation about nodes that no other test shows: by API, streams and scheduler. */
import { describe, expect, it } from 'vitest';
import type { NodeCondition, Taint, Toleration } from '../../../shared/kubernetes/kubernetes.ts';
import { apiInMemory, NODES, node, pod, podsIn } from '../../support/api-in-memory.ts';
import { type NodeParts, ScheduledCluster } from '../../support/scheduled-cluster.ts';

/** Nothing holds evictions: the gate would close, because no tick runs. */
async function cluster(nodes: Readonly<Record<string, NodeParts>>): Promise<ScheduledCluster> {
  const made = new ScheduledCluster({ policy: { tickGate: 'off', ingestGate: 'off' } });
  for (const [name, parts] of Object.entries(nodes)) await made.node(name, parts);
  return made;
}

/** The node of a new pod with these tolerations. Empty: it waits. */
async function nodeOfPod(on: ScheduledCluster, name: string, ...tolerations: Toleration[]): Promise<string> {
  await on.pod(name, { spec: { tolerations } });
  await on.settle();
  return on.nodeOf(name);
}

const isDeleted = async (on: ScheduledCluster, name: string): Promise<boolean> =>
  (await on.get(name)).metadata.deletionTimestamp !== undefined;

async function report(on: ScheduledCluster, name: string, ...more: NodeCondition[]): Promise<void> {
  await on.patchNode(name, { status: { conditions: [{ type: 'Ready', status: 'True' }, ...more] } }, '/status');
  await on.settle();
}

const key1 = (effect: Taint['effect']): Taint => ({ key: 'key1', value: 'value1', effect });

describe('a Node', () => {
  it('of a name that is used is refused', async () => {
    const api = apiInMemory();
    expect((await api.send('POST', NODES, { body: node('n1') })).code).toBe(201);
    expect(await api.send('POST', NODES, { body: node('n1') })).toMatchObject({
      code: 409,
      body: { reason: 'AlreadyExists', message: 'nodes "n1" already exists' },
    });
  });

  it('that no machine has reported gets no pod before it is Ready', async () => {
    const on = await cluster({});
    await on.send('POST', NODES, {
      body: { metadata: { name: 'n1' }, status: { allocatable: { cpu: '4', memory: '8Gi', pods: '110' } } },
    });
    expect(await nodeOfPod(on, 'p')).toBe('');
    await report(on, 'n1');
    await on.at(60);
    expect(await on.nodeOf('p')).toBe('n1');
  });

  it('without a network has its taint until it has one', async () => {
    const on = await cluster({ n1: {} });
    await report(on, 'n1', { type: 'NetworkUnavailable', status: 'True' });
    expect(await on.fleet.taints('n1')).toEqual(['network-unavailable:NoSchedule']);
    await report(on, 'n1', { type: 'NetworkUnavailable', status: 'False' });
    expect(await on.fleet.taints('n1')).toEqual([]);
  });

  it('with disk pressure gets no pod that does not tolerate its taint', async () => {
    const on = await cluster({ n1: {} });
    await report(on, 'n1', { type: 'DiskPressure', status: 'True' });
    expect(await nodeOfPod(on, 'p')).toBe('');
    const tolerating: Toleration = { key: 'node.kubernetes.io/disk-pressure', operator: 'Exists' };
    expect(await nodeOfPod(on, 'tolerating', tolerating)).toBe('n1');
    await report(on, 'n1', { type: 'DiskPressure', status: 'False' });
    await on.at(60);
    expect(await on.nodeOf('p')).toBe('n1');
  });
});

describe('a taint', () => {
  it('is tolerated by Equal with its value, or by Exists, and repels others until it is removed', async () => {
    const on = await cluster({ n1: { taints: [key1('NoSchedule')] } });
    const effect = 'NoSchedule';
    expect(await nodeOfPod(on, 'equal', { key: 'key1', operator: 'Equal', value: 'value1', effect })).toBe('n1');
    expect(await nodeOfPod(on, 'exists', { key: 'key1', operator: 'Exists', effect })).toBe('n1');
    expect(await nodeOfPod(on, 'any-effect', { key: 'key1', operator: 'Exists' })).toBe('n1');
    expect(await nodeOfPod(on, 'another-effect', { key: 'key1', operator: 'Exists', effect: 'NoExecute' })).toBe('');
    expect(await nodeOfPod(on, 'intolerant')).toBe('');
    await on.patchNode('n1', { spec: { taints: null } });
    await on.settle();
    await on.at(60);
    expect(await on.nodeOf('intolerant')).toBe('n1');
  });

  it('with NoSchedule does not keep away a pod that names its node', async () => {
    const on = await cluster({ n1: { taints: [key1('NoSchedule')] } });
    await on.running('p', 'n1');
    await on.settle();
    expect([await on.nodeOf('p'), await isDeleted(on, 'p')]).toEqual(['n1', false]);
  });

  it('with NoExecute evicts a pod that names its node, unless it is tolerated', async () => {
    const on = await cluster({ n1: { taints: [key1('NoExecute')] } });
    await on.running('p', 'n1');
    await on.running('tolerating', 'n1', { spec: { tolerations: [{ key: 'key1', operator: 'Exists' }] } });
    await on.settle();
    expect([await isDeleted(on, 'p'), await isDeleted(on, 'tolerating')]).toEqual([true, false]);
  });

  it('that is not tolerated, beside two that are, keeps a new pod away and leaves the running one', async () => {
    const on = await cluster({ n1: {} });
    const tolerations = (['NoSchedule', 'NoExecute'] as const).map(
      (effect): Toleration => ({ key: 'key1', operator: 'Equal', value: 'value1', effect }),
    );
    await on.running('running', 'n1', { spec: { tolerations } });
    await on.running('intolerant', 'n1');
    const taints = [key1('NoSchedule'), key1('NoExecute'), { key: 'key2', value: 'value2', effect: 'NoSchedule' }];
    await on.patchNode('n1', { spec: { taints } });
    await on.settle();
    expect(await nodeOfPod(on, 'new', ...tolerations)).toBe('');
    expect([await isDeleted(on, 'running'), await isDeleted(on, 'intolerant')]).toEqual([false, true]);
  });
});

describe('a toleration that compares', () => {
  const SLA = 'example.com/sla';
  const sla = (value: string, effect: Taint['effect'] = 'NoSchedule'): NodeParts => ({
    taints: [{ key: SLA, value, effect }],
  });
  const compares = (operator: 'Gt' | 'Lt', value: string): Toleration => ({ key: SLA, operator, value });

  it('matches taints above its value, or below it, that repel or evict', async () => {
    for (const effect of ['NoSchedule', 'NoExecute'] as const) {
      const on = await cluster({ n1: sla('950', effect) });
      expect(await nodeOfPod(on, 'above-900', compares('Gt', '900'))).toBe('n1');
      expect(await nodeOfPod(on, 'above-950', compares('Gt', '950'))).toBe('');
      expect(await nodeOfPod(on, 'below-1000', compares('Lt', '1000'))).toBe('n1');
      expect(await nodeOfPod(on, 'below-900', compares('Lt', '900'))).toBe('');
      expect([await isDeleted(on, 'above-900'), await isDeleted(on, 'below-1000')]).toEqual([false, false]);
    }
  });

  it('matches a taint that is avoided', async () => {
    const on = await cluster({ n1: sla('950', 'PreferNoSchedule'), n2: {} });
    // Without the taint n1 is better, because it is empty.
    await on.running('load', 'n2', { requests: { cpu: '2', memory: '4Gi' } });
    expect(await nodeOfPod(on, 'above-900', compares('Gt', '900'))).toBe('n1');
    await on.remove('above-900');
    expect(await nodeOfPod(on, 'above-950', compares('Gt', '950'))).toBe('n2');
  });

  it('does not match a taint with another value than an integer', async () => {
    const on = await cluster({ n1: sla('high') });
    expect(await nodeOfPod(on, 'p', compares('Gt', '1'))).toBe('');
  });

  it.each([
    ['high', 'must be a valid decimal integer in canonical form'],
    ['007', 'must be a valid decimal integer in canonical form'],
    ['-0', 'must be a valid decimal integer in canonical form'],
    ['9223372036854775808', 'must be a 64-bit signed integer'],
  ])('with the value %s is refused', async (value, message) => {
    const api = apiInMemory();
    const body = pod('p', { spec: { tolerations: [compares('Gt', value)] } });
    const answer = await api.send('POST', podsIn('default'), { body });
    expect([answer.code, answer.body.message]).toEqual([
      422,
      expect.stringContaining(`spec.tolerations[0].value: Invalid value: "${value}": ${message}`),
    ]);
  });
});
