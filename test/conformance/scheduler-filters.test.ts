/**
 * SF, SA, ST, SP, SD: resources, cordon and node affinity, taints, host ports, declared features. By the API, the
 * streams and the scheduler.
 */
import { describe, expect, it } from 'vitest';
import type { NodeSelectorTerm, PodSpec } from '../../shared/kinds/types.ts';
import { type NodeParts, type PodParts, ScheduledCluster } from '../support/scheduled-cluster.ts';

const CLAIMED = { 'example.com/gpu': '5' };

async function cluster(nodes: Readonly<Record<string, NodeParts>> = { n1: {} }): Promise<ScheduledCluster> {
  const made = new ScheduledCluster();
  for (const [name, parts] of Object.entries(nodes)) await made.node(name, parts);
  return made;
}

/** Places p; the node's name, or `waits: ` and the reasons. */
async function placed(on: ScheduledCluster, parts: PodParts = {}): Promise<string> {
  await on.pod('p', parts);
  await on.settle();
  return (await on.nodeOf('p')) || `waits: ${await on.reasons('p')}`;
}

const containers = (...requests: Record<string, string>[]): PodSpec['containers'] =>
  requests.map((each, index) => ({ name: `c${index}`, image: 'registry.example/c:1', resources: { requests: each } }));
const inits = (...requests: Record<string, string>[]): NonNullable<PodSpec['initContainers']> =>
  containers(...requests)!.map((each, index) => ({ ...each, name: `init${index}` }));
const sidecar = (requests: Record<string, string>) => ({
  name: 'sidecar',
  image: 'registry.example/s:1',
  restartPolicy: 'Always',
  resources: { requests },
});
const required = (...nodeSelectorTerms: NodeSelectorTerm[]): PodParts => ({
  spec: { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } },
});
const expressions = (...list: [key: string, operator: string, values?: string[]][]): NodeSelectorTerm =>
  ({
    matchExpressions: list.map(([key, operator, values]) => ({ key, operator, ...(values && { values }) })),
  }) as NodeSelectorTerm;
const named = (...names: string[]): NodeSelectorTerm => ({
  matchFields: [{ key: 'metadata.name', operator: 'In', values: names }],
});

describe('SF resources', () => {
  it('SF-01: a pod without requests fits a full node', async () => {
    const on = await cluster();
    await on.running('a', 'n1', { requests: { cpu: '4', memory: '8Gi' } });
    expect(await placed(on)).toBe('n1');
  });

  it('SF-03 the largest init container counts', async () => {
    const on = await cluster();
    await on.running('a', 'n1', { requests: { cpu: '3200m' } });
    const spec = { containers: containers({ cpu: '100m' })!, initContainers: inits({ cpu: '1' }) };
    expect(await placed(on, { spec })).toBe('waits: 1 Insufficient cpu.');
  });

  it('SF-05 also for memory', async () => {
    const on = await cluster({ n1: { allocatable: { memory: '900Mi' } } });
    const spec = { containers: containers({ memory: '64Mi' })!, initContainers: inits({ memory: '1Gi' }) };
    expect(await placed(on, { spec })).toBe('waits: 1 Insufficient memory.');
  });

  it('SF-07 init containers run one after the other', async () => {
    const on = await cluster({ n1: { allocatable: { cpu: '500m' } } });
    const initContainers = inits({ cpu: '500m' }, { cpu: '500m' }, { cpu: '500m' });
    expect(await placed(on, { spec: { containers: containers({ cpu: '500m' })!, initContainers } })).toBe('n1');
  });

  it('SF-09 equal fits', async () => {
    const on = await cluster({ n1: { allocatable: { cpu: '1', memory: '1Gi' } } });
    expect(await placed(on, { requests: { cpu: '1', memory: '1Gi' } })).toBe('n1');
  });

  it('SF-11 only the resource that is short is reported', async () => {
    const on = await cluster({ n1: { allocatable: { cpu: '2', memory: '1Gi' } } });
    expect(await placed(on, { requests: { cpu: '1', memory: '2Gi' } })).toBe('waits: 1 Insufficient memory.');
  });

  it('SF-13 more than allocatable is not helped by preemption', async () => {
    const on = await cluster({ n1: { allocatable: CLAIMED } });
    const wanted = { 'example.com/gpu': '10' };
    const spec = { containers: [{ name: 'c', image: 'i', resources: { requests: wanted, limits: wanted } }] };
    expect(await placed(on, { spec })).toBe('waits: 1 Insufficient example.com/gpu.');
    expect(await on.preemptionText('p')).toBe('0/1 nodes are available: 1 Preemption is not helpful for scheduling.');
  });

  it('SF-15 requests of several containers are added', async () => {
    const on = await cluster({ n1: { allocatable: CLAIMED } });
    const three = { requests: { 'example.com/gpu': '3' }, limits: { 'example.com/gpu': '3' } };
    const two = { requests: { 'example.com/gpu': '2' }, limits: { 'example.com/gpu': '2' } };
    await on.running('a', 'n1', { spec: { containers: [{ name: 'c', image: 'i', resources: two }] } });
    const spec = {
      containers: [
        { name: 'a', image: 'i', resources: three },
        { name: 'b', image: 'i', resources: three },
      ],
    };
    expect(await placed(on, { spec })).toBe('waits: 1 Insufficient example.com/gpu.');
  });

  it('SF-17: a resource that the node does not list is 0', async () => {
    const on = await cluster();
    const wanted = { 'example.com/bbb': '1' };
    const spec = { containers: [{ name: 'c', image: 'i', resources: { requests: wanted, limits: wanted } }] };
    expect(await placed(on, { spec })).toBe('waits: 1 Insufficient example.com/bbb.');
  });

  it('SF-19 huge pages are a resource', async () => {
    const on = await cluster({ n1: { allocatable: { 'hugepages-2Mi': '10Mi' } } });
    const wanted = { 'hugepages-2Mi': '20Mi', memory: '64Mi' };
    const spec = { containers: [{ name: 'c', image: 'i', resources: { requests: wanted, limits: wanted } }] };
    expect(await placed(on, { spec })).toBe('waits: 1 Insufficient hugepages-2Mi.');
  });

  it('SF-21 overhead is added', async () => {
    const on = await cluster({ n1: { allocatable: { cpu: '400m', memory: '192Mi' } } });
    const podFixed = { cpu: '300m', memory: '128Mi' };
    const body = { metadata: { name: 'sandbox' }, handler: 'sandbox', overhead: { podFixed } };
    await on.send('POST', '/apis/node.k8s.io/v1/runtimeclasses', { body });
    const spec = { runtimeClassName: 'sandbox' };
    expect(await placed(on, { requests: { cpu: '100m', memory: '64Mi' }, spec })).toBe('n1');
    await on.pod('q', { requests: { cpu: '1m' } });
    await on.settle();
    expect(await on.reasons('q')).toBe('1 Insufficient cpu.');
  });

  it('SF-23 the number of pods is limited, also for pods without requests', async () => {
    const on = await cluster({ n1: { allocatable: { pods: '2' } } });
    await on.running('a', 'n1');
    await on.running('b', 'n1');
    expect(await placed(on)).toBe('waits: 1 Too many pods.');
  });

  it('SF-25 ephemeral storage counts by itself', async () => {
    const on = await cluster();
    await on.running('a', 'n1', { requests: { 'ephemeral-storage': '10Gi' } });
    expect(await placed(on, { requests: { 'ephemeral-storage': '5Gi' } })).toBe('n1');
  });

  it('SF-27: a sidecar runs beside the containers', async () => {
    const on = await cluster({ n1: { allocatable: { cpu: '2' } } });
    const spec = { containers: containers({ cpu: '1' })!, initContainers: [sidecar({ cpu: '1' })] };
    expect(await placed(on, { spec })).toBe('n1');
  });

  it('SF-29: an init container runs beside the sidecars before it', async () => {
    const on = await cluster({ n1: { allocatable: { cpu: '1500m' } }, n2: { allocatable: { cpu: '1499m' } } });
    const initContainers = [sidecar({ cpu: '500m' }), ...inits({ cpu: '1' })];
    expect(await placed(on, { spec: { containers: containers({ cpu: '200m' })!, initContainers } })).toBe('n1');
    await on.pod('q', { requests: { cpu: '1499m' } });
    await on.settle();
    expect(await on.nodeOf('q')).toBe('n2');
    await on.pod('r', { requests: { cpu: '1m' } });
    await on.settle();
    expect(await on.reasons('r')).toBe('2 Insufficient cpu.');
  });

  it('SF-31 requests of the pod replace those of its containers', async () => {
    const on = await cluster({ n1: { allocatable: { cpu: '500m' } } });
    const spec = { containers: containers({ cpu: '100m' })!, resources: { requests: { cpu: '700m' } } };
    expect(await placed(on, { spec })).toBe('waits: 1 Insufficient cpu.');
  });

  it('SF-33 terminated pods do not count', async () => {
    const on = await cluster();
    await on.running('a', 'n1', { requests: { cpu: '4' }, status: { phase: 'Succeeded' } });
    await on.running('b', 'n1', { requests: { cpu: '4' }, status: { phase: 'Failed' } });
    expect(await placed(on, { requests: { cpu: '4' } })).toBe('n1');
  });
});

const MISMATCH = "node(s) didn't match Pod's node affinity/selector";

describe('SA node name, cordon, node affinity', () => {
  it('SA-01: a node selector', async () => {
    const on = await cluster({ n1: {}, n2: { labels: { foo: 'bar', x: 'y' } } });
    expect(await placed(on, { spec: { nodeSelector: { foo: 'bar' } } })).toBe('n2');
  });

  it('SA-03 In', async () => {
    const on = await cluster({ n1: { labels: { foo: 'bar' } }, n2: { labels: { foo: 'baz' } } });
    expect(await placed(on, required(expressions(['foo', 'In', ['bar', 'value2']])))).toBe('n1');
  });

  it('SA-05 NotIn matches a node without the label', async () => {
    const on = await cluster({ n1: { labels: { 'mem-type': 'DDR3' } }, n2: {}, n3: { labels: { 'mem-type': 'DDR' } } });
    expect(await on.feasible(required(expressions(['mem-type', 'NotIn', ['DDR', 'DDR2']])))).toEqual(['n1', 'n2']);
  });

  it('SA-07 no match', async () => {
    const on = await cluster({ n1: { labels: { foo: 'bar' } } });
    expect(await placed(on, required(expressions(['foo', 'In', ['value1', 'value2']])))).toBe(`waits: 1 ${MISMATCH}.`);
  });

  it('SA-09 expressions of a term are ANDed', async () => {
    const on = await cluster({ n1: { labels: { GPU: 'NVIDIA-GRID-K1' } } });
    const term = expressions(['GPU', 'Exists'], ['GPU', 'NotIn', ['AMD', 'INTER']]);
    expect(await placed(on, required(term))).toBe('n1');
  });

  it('SA-11 terms are ORed', async () => {
    const on = await cluster({ n1: { labels: { foo: 'bar' } } });
    const parts = required(expressions(['foo', 'In', ['bar']]), expressions(['diffkey', 'In', ['wrong']]));
    expect(await placed(on, parts)).toBe('n1');
  });

  it('SA-13 the selector must match too', async () => {
    const on = await cluster({ n1: { labels: { foo: 'bar' } } });
    const { spec } = required(expressions(['foo', 'Exists']));
    expect(await placed(on, { spec: { ...spec, nodeSelector: { foo: 'nope' } } })).toBe(`waits: 1 ${MISMATCH}.`);
  });

  it('SA-15: a term with a name looks at that node only', async () => {
    const on = await cluster({ n1: {}, n2: {}, n3: {} });
    expect(await placed(on, required(named('n1')))).toBe('n1');
    expect(await on.rejected('p')).toEqual({ "node(s) didn't satisfy plugin(s) [NodeAffinity]": 2 });
  });

  it('SA-17 the node of that name does not exist', async () => {
    const on = await cluster({ n2: {} });
    expect(await placed(on, required(named('n1')))).toBe("waits: 1 node(s) didn't satisfy plugin(s) [NodeAffinity].");
  });

  it('SA-19: a name and an expression in one term', async () => {
    const on = await cluster({ n1: {}, n2: { labels: { foo: 'bar' } } });
    const term = { ...named('n1'), ...expressions(['foo', 'In', ['bar']]) };
    expect(await placed(on, required(term))).toBe(
      `waits: 1 ${MISMATCH}, 1 node(s) didn't satisfy plugin(s) [NodeAffinity].`,
    );
  });

  it('SA-21 two terms with names', async () => {
    const on = await cluster({ n1: {}, n2: {}, n3: {} });
    const parts = required(named('n1'), named('n2'));
    expect(await on.feasible(parts)).toEqual(['n1', 'n2']);
    await placed(on, parts);
    expect(await on.rejected('p')).toEqual({ "node(s) didn't satisfy plugin(s) [NodeAffinity]": 1 });
  });

  it('SA-23: a cordoned node', async () => {
    const on = await cluster({ n1: { unschedulable: true } });
    expect(await placed(on)).toBe('waits: 1 node(s) were unschedulable.');
  });
});

const UNTOLERATED = 'waits: 1 node(s) had untolerated taint(s).';
const dedicated = (value: string, effect = 'NoSchedule') => ({ key: 'dedicated', value, effect });
const tolerating = (...tolerations: object[]): PodParts => ({ spec: { tolerations } as PodParts['spec'] & object });

describe('ST taints', () => {
  it('ST-01: an untolerated taint', async () => {
    const on = await cluster({ n1: { taints: [dedicated('user1')] } });
    expect(await placed(on)).toBe(UNTOLERATED);
  });

  it('names the runtime of machines that run processes', async () => {
    const on = await cluster({
      n1: { taints: [{ key: 'nodekeeper.dev/runtime', value: 'exec', effect: 'NoSchedule' }] },
    });
    expect(await placed(on)).toBe(
      'waits: 1 node(s) run processes, not images (untolerated taint nodekeeper.dev/runtime).',
    );
    expect(await on.feasible(tolerating({ key: 'nodekeeper.dev/runtime', operator: 'Exists' }))).toEqual(['n1']);
  });

  it('ST-03 another value', async () => {
    const on = await cluster({ n1: { taints: [dedicated('user1')] } });
    const parts = tolerating({ key: 'dedicated', operator: 'Equal', value: 'user2', effect: 'NoSchedule' });
    expect(await placed(on, parts)).toBe(UNTOLERATED);
  });

  it('ST-05 every taint needs a toleration', async () => {
    const on = await cluster({
      n1: { taints: [dedicated('user2'), { key: 'foo', value: 'bar', effect: 'NoSchedule' }] },
    });
    const parts = tolerating(
      { key: 'dedicated', operator: 'Equal', value: 'user2', effect: 'NoSchedule' },
      { key: 'foo', operator: 'Exists' },
    );
    expect(await placed(on, parts)).toBe('n1');
  });

  it('ST-07 another effect', async () => {
    const on = await cluster({ n1: { taints: [{ key: 'foo', value: 'bar', effect: 'NoSchedule' }] } });
    const parts = tolerating({ key: 'foo', operator: 'Equal', value: 'bar', effect: 'PreferNoSchedule' });
    expect(await placed(on, parts)).toBe(UNTOLERATED);
  });

  it('ST-09 PreferNoSchedule rejects nothing', async () => {
    const on = await cluster({ n1: { taints: [dedicated('user1', 'PreferNoSchedule')] } });
    expect(await placed(on)).toBe('n1');
  });

  it('ST-11 the default tolerations tolerate not-ready:NoExecute, which is why the NoSchedule twin exists', async () => {
    const on = await cluster({ n1: { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }] } });
    expect(await on.feasible()).toEqual(['n1']);
  });

  it('ST-13 Exists without a key tolerates everything', async () => {
    const taints = ['a', 'b', 'c', 'd', 'e'].map((key, index) => ({
      key,
      value: 'v',
      effect: index % 2 === 0 ? 'NoSchedule' : 'NoExecute',
    }));
    const on = await cluster({ n1: { taints } });
    expect(await placed(on, tolerating({ operator: 'Exists' }))).toBe('n1');
  });

  it('ST-15: an absent value is an empty one', async () => {
    const on = await cluster({ n1: { taints: [{ key: 'foo', effect: 'NoSchedule' }] } });
    expect(await placed(on, tolerating({ key: 'foo', operator: 'Equal', value: '' }))).toBe('n1');
  });
});

/** `TCP/127.0.0.1/8080`; an empty part is left out. */
const port = (text: string) => {
  const [protocol, hostIP, hostPort] = text.split('/');
  return {
    ...(protocol && { protocol: protocol as 'TCP' }),
    ...(hostIP && { hostIP }),
    hostPort: Number(hostPort),
    containerPort: Number(hostPort),
  };
};
const using = (...ports: string[]): PodParts => ({
  spec: { containers: [{ name: 'c', image: 'registry.example/c:1', ports: ports.map(port) }] },
});
const NO_PORT = "waits: 1 node(s) didn't have free ports for the requested pod ports.";

describe('SP host ports', () => {
  it.each([
    ['SP-01 another port', 'UDP/127.0.0.1/9090', ['UDP/127.0.0.1/8080'], 'n1'],
    ['SP-03 another address', 'TCP/127.0.0.1/8080', ['TCP/127.0.0.2/8080'], 'n1'],
    ['SP-05 the second port', 'UDP/127.0.0.1/8080', ['UDP/127.0.0.1/8000', 'UDP/127.0.0.1/8080'], NO_PORT],
    ['SP-07 0.0.0.0 needs all addresses', 'TCP/127.0.0.1/8001', ['TCP/0.0.0.0/8001'], NO_PORT],
    ['SP-09 0.0.0.0 uses all addresses', 'TCP/0.0.0.0/8001', ['TCP/127.0.0.1/8001'], NO_PORT],
  ])('%s', async (_name, used, wanted, outcome) => {
    const on = await cluster();
    await on.running('a', 'n1', using(used));
    expect(await placed(on, using(...wanted))).toBe(outcome);
  });

  it('SP-11 ports of an init container do not count', async () => {
    const on = await cluster();
    await on.running('a', 'n1', using('//8001'));
    const initContainers = [{ name: 'i', image: 'registry.example/i:1', ports: [port('//8001')] }];
    expect(await placed(on, { spec: { initContainers } })).toBe('n1');
  });

  it('SP-13 the end of a pod frees its port', async () => {
    const on = await cluster();
    await on.running('a', 'n1', using('//8080'));
    expect(await placed(on, using('TCP/0.0.0.0/8080'))).toBe(NO_PORT);
    await on.status('a', { phase: 'Succeeded' });
    await on.settle();
    await on.at(2);
    expect(await on.nodeOf('p')).toBe('n1');
  });
});

const DECLARED = 'RestartAllContainersOnContainerExits';
const restartingAll = (on: 'containers' | 'initContainers'): PodParts => {
  const container = {
    name: 'c',
    image: 'registry.example/c:1',
    restartPolicy: 'Never',
    restartPolicyRules: [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } }],
  };
  return { spec: { [on]: [container] } };
};
const NOT_DECLARED = "waits: 1 node(s) didn't match Pod's required features.";

describe('SD declared features', () => {
  it.each([
    ['SD-01: a node without any', [], restartingAll('containers'), NOT_DECLARED],
    ['SD-03: a node with it', ['Another', DECLARED], restartingAll('containers'), 'n1'],
    ['SD-05: a node with another', ['Another'], restartingAll('initContainers'), NOT_DECLARED],
    ['SD-07: a pod that needs none', [], {}, 'n1'],
    [
      'SD-09 user namespaces on the network of the node',
      [DECLARED],
      { spec: { hostNetwork: true, hostUsers: false } },
      NOT_DECLARED,
    ],
    ['SD-11 the network alone', [], { spec: { hostNetwork: true, hostUsers: true } }, 'n1'],
    ['SD-12 user namespaces alone', [], { spec: { hostUsers: false } }, 'n1'],
  ] satisfies [string, string[], PodParts, string][])('%s', async (_name, declaredFeatures, pod, outcome) => {
    const on = await cluster();
    await on.patchNode('n1', { status: { declaredFeatures } }, '/status');
    expect(await placed(on, pod)).toBe(outcome);
  });

  it('SD-13 another node that declares it; preemption does not help', async () => {
    const on = await cluster();
    expect(await placed(on, restartingAll('containers'))).toBe(NOT_DECLARED);
    expect(await on.preemptionText('p')).toBe('0/1 nodes are available: 1 Preemption is not helpful for scheduling.');
    expect(await on.rejected('p')).toEqual({ "node(s) didn't match Pod's required features": 1 });
    await on.patchNode('n1', { status: { declaredFeatures: [DECLARED] } }, '/status');
    await on.settle();
    await on.at(2);
    expect(await on.nodeOf('p')).toBe('n1');
  });
});
