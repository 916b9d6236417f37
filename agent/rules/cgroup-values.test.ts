import { describe, expect, it } from 'vitest';
import type { KubePod } from '../../shared/kinds/types.ts';
import {
  ANYWHERE,
  allPodsFiles,
  type CgroupNode,
  containerFiles,
  cpuList,
  cpuQuota,
  cpuShares,
  cpuWeight,
  oomScoreAdjust,
  podCgroup,
  podFiles,
  qosFiles,
} from './cgroup-values.ts';
import { containersOf } from './pod-containers.ts';

const GIB = 1_024 ** 3;
const node: CgroupNode = {
  swap: {
    cgroupVersion: 2,
    controllerPresent: true,
    swapBehavior: 'LimitedSwap',
    memoryBytes: 8 * GIB,
    swapBytes: 4 * GIB,
  },
  enforceCpuLimits: true,
  podPidsMax: undefined,
};

type Amounts = Record<string, string>;
const pod = (...containers: { requests?: Amounts; limits?: Amounts }[]): KubePod => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u-1' },
  spec: { containers: containers.map((resources, index) => ({ name: `c${index}`, resources })) },
});
const filesOf = (each: KubePod, placement = ANYWHERE) => {
  const [container] = containersOf(each);
  return container === undefined ? {} : containerFiles(node, each, container, placement);
};

describe('CPU amounts', () => {
  // Cases of TestMilliCPUToQuota and TestMilliCPUToShares in pkg/kubelet/cm/helpers_linux_test.go.
  it.each([
    [0, 0],
    [5, 1_000],
    [9, 1_000],
    [10, 1_000],
    [200, 20_000],
    [500, 50_000],
    [1_000, 100_000],
    [1_500, 150_000],
  ])('%i milli-CPU is a quota of %i µs', (milli, quota) => expect(cpuQuota(milli)).toBe(quota));

  it.each([
    [0, 2, 1],
    [1, 2, 1],
    [100, 102, 4],
    [1_000, 1_024, 39],
    [256_000, 262_144, 10_000],
    [500_000, 262_144, 10_000],
  ])('%i milli-CPU is %i shares and a weight of %i', (milli, shares, weight) => {
    expect(cpuShares(milli)).toBe(shares);
    expect(cpuWeight(milli)).toBe(weight);
  });
});

describe('the group of a container', () => {
  it('has the limits of its spec, and a share of the swap', () => {
    const burstable = pod({
      requests: { cpu: '250m', memory: '1Gi' },
      limits: { cpu: '1500m', memory: '2Gi' },
    });
    expect(filesOf(burstable)).toEqual({
      'cpu.weight': '10',
      'cpu.max': '150000 100000',
      'memory.max': String(2 * GIB),
      'memory.oom.group': '1',
      'memory.swap.max': String(GIB / 2),
      'cpuset.cpus': '',
      'cpuset.mems': '',
    });
  });

  it('has no limit where its spec has none, and no swap', () => {
    expect(filesOf(pod({}))).toMatchObject({
      'cpu.weight': '1',
      'cpu.max': 'max 100000',
      'memory.max': 'max',
      'memory.swap.max': '0',
    });
  });

  it('has the weight of its limit without a request', () => {
    expect(filesOf(pod({ limits: { cpu: '1' } }))['cpu.weight']).toBe('39');
  });

  it('has no quota on processors of its own', () => {
    const guaranteed = pod({ requests: { cpu: '2', memory: '1Gi' }, limits: { cpu: '2', memory: '1Gi' } });
    const own = { cpus: [5, 2, 3, 1], memoryNodes: [0], exclusive: true };
    expect(filesOf(guaranteed, own)).toMatchObject({
      'cpu.max': 'max 100000',
      'cpuset.cpus': '1-3,5',
      'cpuset.mems': '0',
    });
    expect(podFiles(node, guaranteed, true)['cpu.max']).toBe('max 100000');
    expect(podFiles(node, guaranteed)['cpu.max']).toBe('200000 100000');
  });

  it('has no quota when CPU limits are not enforced', () => {
    const [container] = containersOf(pod({ limits: { cpu: '1' } }));
    const lenient = { ...node, enforceCpuLimits: false };
    const files = container === undefined ? {} : containerFiles(lenient, pod({}), container, ANYWHERE);
    expect(files).toMatchObject({ 'cpu.max': 'max 100000' });
  });
});

describe('the group of a pod', () => {
  // Cases of TestResourceConfigForPod in pkg/kubelet/cm/helpers_linux_test.go.
  it('is limited only if every container is', () => {
    const limited = { requests: { cpu: '100m', memory: '100Mi' }, limits: { cpu: '200m', memory: '200Mi' } };
    expect(podFiles(node, pod(limited, limited))).toEqual({
      'cpu.weight': '8',
      'cpu.max': '40000 100000',
      'memory.max': String(400 * 1_024 ** 2),
      'pids.max': 'max',
    });
    expect(podFiles(node, pod(limited, { requests: { cpu: '100m' } }))).toMatchObject({
      'cpu.max': 'max 100000',
      'memory.max': 'max',
    });
    expect(podFiles(node, pod({}))).toMatchObject({ 'cpu.weight': '1', 'memory.max': 'max' });
  });

  it('has the limits of the pod itself before those of its containers, which have them in place of none', () => {
    const containers = pod({}, { limits: { cpu: '250m', memory: '1Gi' } });
    const resources = { requests: { cpu: '500m' }, limits: { cpu: '1', memory: '2Gi' } };
    const limited = { ...containers, spec: { ...containers.spec, resources } };
    expect(podFiles(node, limited)).toMatchObject({ 'cpu.max': '100000 100000', 'memory.max': `${2 * GIB}` });
    expect(filesOf(limited)).toMatchObject({
      'cpu.weight': '39',
      'cpu.max': '100000 100000',
      'memory.max': `${2 * GIB}`,
    });
    const [, own] = containersOf(limited);
    expect(own && containerFiles(node, limited, own, ANYWHERE)).toMatchObject({
      'cpu.max': '25000 100000',
      'memory.max': `${GIB}`,
    });
  });

  it('has the number of processes of the configuration', () => {
    expect(podFiles({ ...node, podPidsMax: 64 }, pod({}))['pids.max']).toBe('64');
  });

  it('is below its QoS class', () => {
    const guaranteed = pod({ requests: { cpu: '2', memory: '1Gi' }, limits: { cpu: '2', memory: '1Gi' } });
    expect(podCgroup(guaranteed)).toBe('kubepods/podu-1');
    expect(podCgroup(pod({ requests: { cpu: '1' } }))).toBe('kubepods/burstable/podu-1');
    expect(podCgroup(pod({}))).toBe('kubepods/besteffort/podu-1');
  });
});

describe('the groups around pods', () => {
  const capacity = { cpu: '4', memory: '8Gi', pid: '1000' };

  it('leave the reservations to the system', () => {
    const reserved = { systemReserved: { cpu: '500m', memory: '1Gi' }, kubeReserved: { memory: '512Mi', pid: '100' } };
    expect(allPodsFiles({ capacity, ...reserved, enforced: true })).toEqual({
      'cpu.weight': String(cpuWeight(3_500)),
      'memory.max': String(6.5 * GIB),
      'pids.max': '900',
    });
    expect(allPodsFiles({ capacity, ...reserved, enforced: false })).toMatchObject({ 'memory.max': String(8 * GIB) });
  });

  it('share CPU by the requests of Burstable pods', () => {
    const burstable = pod({ requests: { cpu: '500m' } });
    const guaranteed = pod({ requests: { cpu: '2', memory: '1Gi' }, limits: { cpu: '2', memory: '1Gi' } });
    expect(qosFiles([burstable, guaranteed, burstable, pod({})])).toEqual({
      burstable: { 'cpu.weight': '39' },
      besteffort: { 'cpu.weight': '1' },
    });
  });
});

describe('the OOM score of a container', () => {
  // Cases of pkg/kubelet/qos/policy_test.go, with 8 GiB of memory.
  it.each([
    ['Guaranteed', pod({ requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '1', memory: '1Gi' } }), -997],
    ['BestEffort', pod({}), 1_000],
    ['Burstable with half of the memory', pod({ requests: { memory: '4Gi' } }), 500],
    ['Burstable with nearly all of the memory', pod({ requests: { memory: '8Gi' } }), 3],
    ['Burstable with CPU alone', pod({ requests: { cpu: '1' } }), 999],
  ])('%s', (_name, each, score) => {
    const [container] = containersOf(each);
    expect(container === undefined ? undefined : oomScoreAdjust(each, container, 8 * GIB)).toBe(score);
  });

  it('counts what the pod requests beyond its containers in equal parts, and a sidecar at least as its containers', () => {
    const container = (name: string, memory?: string) => ({ name, resources: { requests: memory ? { memory } : {} } });
    const each: KubePod = {
      metadata: { name: 'p', uid: 'u' },
      spec: {
        resources: { requests: { memory: '4Gi' } },
        initContainers: [{ ...container('sidecar'), restartPolicy: 'Always' }, container('init')],
        containers: [container('small', '1Gi'), container('large', '2Gi')],
      },
    };
    const scores = containersOf(each).map((one) => [one.name, oomScoreAdjust(each, one, 8 * GIB)]);
    // Each has a quarter of the last GiB.
    expect(Object.fromEntries(scores)).toEqual({ sidecar: 844, init: 969, small: 844, large: 719 });
  });
});

describe('a list of processors', () => {
  it.each([
    [[], ''],
    [[0], '0'],
    [[3, 1, 2, 7, 7], '1-3,7'],
    [[0, 2, 4], '0,2,4'],
  ])('%j is %j', (ids, text) => expect(cpuList(ids)).toBe(text));
});

it('a pod has the limit of the largest moment of its start', () => {
  const limits = (cpu: string) => ({ resources: { limits: { cpu, memory: '1Gi' } } });
  const quotaOf = (init: string, sidecar: string, main: string, isSidecarFirst = true): string | undefined => {
    const starting = { name: 'i', ...limits(init) };
    const beside = { name: 's', restartPolicy: 'Always', ...limits(sidecar) };
    const initContainers = isSidecarFirst ? [beside, starting] : [starting, beside];
    const spec = { initContainers, containers: [{ name: 'm', ...limits(main) }] };
    return podFiles(node, { metadata: { name: 'p', uid: 'u-1' }, spec })['cpu.max'];
  };
  // The init container runs beside the sidecar before it only.
  expect(quotaOf('3', '1', '1')).toBe('400000 100000');
  expect(quotaOf('3', '1', '1', false)).toBe('300000 100000');
  expect(quotaOf('1', '1', '2')).toBe('300000 100000');
});

it.each(['-1', 'many', '0'])('a container with %s for each amount is one without', (amount) => {
  const amounts = { cpu: amount, memory: amount };
  expect(filesOf(pod({ requests: amounts, limits: amounts }))).toEqual(filesOf(pod({ requests: {}, limits: {} })));
});
