/** Areas WL, WB, WS and QC: swap as `plan swap` computes it (nothing writes it), and the class of a pod. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { plan } from '../../../agent/bin/plan.ts';
import { checkConfig, describeConfigFault } from '../../../agent/rules/config-settings.ts';
import { swapIsOn, swapStartFault } from '../../../agent/rules/swap-detection.ts';
import { podQosClass } from '../../../shared/kinds/pods/pod-needs.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';

const GI = 1_073_741_824;

type Amounts = Record<string, string>;
interface Resources {
  requests?: Amounts;
  limits?: Amounts;
}
const podOf = (...containers: Resources[]): KubeObject => ({
  metadata: { name: 'p' },
  spec: { containers: containers.map((resources, index) => ({ name: `c${index + 1}`, resources })) },
});

interface PlannedNode {
  readonly memoryBytes: number;
  readonly swapBytes: number;
  readonly swapBehavior: string;
  readonly gate: boolean;
  /** Files of the machine, below its root. */
  readonly cgroup: Readonly<Record<string, string>>;
}

const CGROUP_V2_ABSENT = { 'sys/fs/cgroup/cgroup.controllers': '', 'proc/self/cgroup': '0::/agent\n' };
const CGROUP_V2 = { ...CGROUP_V2_ABSENT, 'sys/fs/cgroup/agent/memory.swap.max': 'max\n' };
const CGROUP_V1 = {
  'sys/fs/cgroup/memory/memory.limit_in_bytes': '',
  'sys/fs/cgroup/memory/memory.memsw.limit_in_bytes': '',
};
const NODE: PlannedNode = {
  memoryBytes: 40 * GI,
  swapBytes: 5 * GI,
  swapBehavior: 'LimitedSwap',
  gate: true,
  cgroup: CGROUP_V2,
};

type Limit = { readonly kind: string; readonly bytes?: number };

/** What `nodekeeper-agent plan swap` prints: the limits by container, or what it refuses. */
async function planned(over: Partial<PlannedNode>, pod: KubeObject): Promise<readonly Limit[] | string> {
  const { memoryBytes, swapBytes, swapBehavior, gate, cgroup } = { ...NODE, ...over };
  const kubelet = {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    memorySwap: { swapBehavior },
    featureGates: { NodeSwap: gate },
  };
  const files: Record<string, string> = {
    'k.json': JSON.stringify(kubelet),
    'p.json': JSON.stringify({ kind: 'Pod', ...pod }),
  };
  for (const [path, text] of Object.entries(cgroup)) files[join('/m', path)] = text;
  const lines: string[] = [];
  const argv = ['swap', '--config', 'k.json', '--pods', 'p.json', '--root', '/m', '--json'];
  await plan([...argv, '--memory', String(memoryBytes), '--swap', String(swapBytes)], {
    readText: (path) => {
      const text = files[path];
      if (text === undefined) throw new Error(`no file ${path}`);
      return text;
    },
    hostname: () => 'h',
    print: (line) => lines.push(line),
    printError: (line) => lines.push(line),
  });
  const text = lines.join('\n');
  if (!text.startsWith('{')) return text;
  const { pods } = JSON.parse(text) as { pods: { containers: ({ name: string } & Limit)[] }[] };
  return (pods[0]?.containers ?? []).map(({ name: _name, ...limit }) => limit);
}

const swapMax = (...bytes: number[]): Limit[] => bytes.map((each) => ({ kind: 'swapMax', bytes: each }));
const memoryAndSwap = (...bytes: number[]): Limit[] => bytes.map((each) => ({ kind: 'memoryAndSwap', bytes: each }));

describe('swap of one container', () => {
  it.each([
    ['WL-01', 1_073_741_824, 85_899_345_920, 4_294_967_296, 53_687_091],
    ['WL-03', 5_368_709_120, 161_061_273_600, 42_949_672_960, 1_431_655_765],
    ['WL-05', 2_147_483_648, 42_949_672_960, 5_368_709_120, 268_435_456],
    ['WL-07', 42_949_672_960, 42_949_672_960, 5_368_709_120, 5_368_709_120],
    ['WL-09 no memory', 1_073_741_824, 0, 5_368_709_120, 0],
    ['WL-11', 104_857_600, 3_221_225_472, 1_073_741_824, 34_952_533],
  ])('%s request %d of %d with swap %d', async (_id, request, memoryBytes, swapBytes, expected) => {
    const pod = podOf({ requests: { memory: String(request) } });
    expect(await planned({ memoryBytes, swapBytes }, pod)).toEqual(swapMax(expected));
  });
});

const BURSTABLE = podOf({ requests: { memory: '1Gi' } }, { requests: { memory: '2Gi' } });
const NOTHING = podOf({}, {});
const equal = (memory: string): Resources => ({
  requests: { cpu: '1', memory },
  limits: { cpu: '1', memory },
});

describe('swap by behaviour', () => {
  it.each<[string, Partial<PlannedNode>, KubeObject, Limit[]]>([
    ['WB-01 limited, Burstable', {}, BURSTABLE, swapMax(134_217_728, 268_435_456)],
    [
      'WB-03 a container with equal request and limit',
      {},
      podOf({ requests: { memory: '1Gi' } }, { requests: { memory: '2Gi' }, limits: { memory: '2Gi' } }),
      swapMax(134_217_728, 0),
    ],
    ['WB-05 limited, BestEffort', {}, NOTHING, swapMax(0, 0)],
    ['WB-07 none', { swapBehavior: 'NoSwap' }, NOTHING, swapMax(0, 0)],
    ['WB-09 empty', { swapBehavior: '' }, NOTHING, swapMax(0, 0)],
    ['WB-13 cgroup v1', { cgroup: CGROUP_V1 }, NOTHING, memoryAndSwap(0, 0)],
    [
      'WB-15 no swap controller',
      { cgroup: CGROUP_V2_ABSENT, swapBehavior: '' },
      NOTHING,
      [{ kind: 'unset' }, { kind: 'unset' }],
    ],
    [
      'WB-17 cgroup v1, Guaranteed',
      { cgroup: CGROUP_V1, swapBehavior: 'NoSwap' },
      podOf(equal('1Gi'), equal('2Gi')),
      memoryAndSwap(1_073_741_824, 2_147_483_648),
    ],
    [
      'WB-19 a limit without a request',
      {},
      podOf({ requests: { memory: '1Gi' } }, { requests: { memory: '0' }, limits: { memory: '2Gi' } }),
      swapMax(134_217_728, 0),
    ],
  ])('%s', async (_name, over, pod, expected) => {
    expect(await planned(over, pod)).toEqual(expected);
  });

  it('WB-11 gate off: no swap, and no configuration that asks for some', async () => {
    expect(await planned({ gate: false }, BURSTABLE)).toMatch(/cannot be set when the feature gate NodeSwap is off/);
    expect(await planned({ gate: false, swapBehavior: '' }, BURSTABLE)).toEqual(swapMax(0, 0));
  });

  it('assigns none to a critical pod', async () => {
    const critical = { ...BURSTABLE, spec: { ...BURSTABLE.spec, priorityClassName: 'system-cluster-critical' } };
    expect(await planned({}, critical)).toEqual(swapMax(0, 0));
  });

  it('assigns none to a Guaranteed pod', async () => {
    expect(await planned({}, podOf(equal('1Gi'), equal('2Gi')))).toEqual(swapMax(0, 0));
  });
});

describe('swap at the start', () => {
  const checked = (fields: Record<string, unknown>) => {
    const value = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', ...fields };
    const documents = [{ value, at: () => 'k.yaml:3' }];
    return checkConfig({ documents, flags: { endpoint: 'https://example.test' }, hostname: 'h' });
  };
  const startFault = (fields: Record<string, unknown>, procSwaps: string) =>
    swapStartFault(checked(fields).config.failSwapOn, procSwaps);
  const HEADER = 'Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n';
  const DEVICES = `${HEADER}/dev/sda2 partition 2097148 0 -2\n/swapfile file 1048572 0 -3\n`;

  it('WS-01 is off with an empty /proc/swaps, or none', () => {
    expect(swapIsOn('')).toBe(false);
    expect(swapIsOn(undefined)).toBe(false);
  });
  it('WS-03 is off with the heading alone', () => {
    expect(swapIsOn(HEADER)).toBe(false);
  });
  it('WS-05 is on with devices', () => {
    expect(swapIsOn(DEVICES)).toBe(true);
  });
  it('WS-07 does not start where swap is on, unless configured to', () => {
    expect(startFault({}, DEVICES)).toMatch(
      /^running with swap on is not supported, please disable swap.*; \/proc\/swaps lists \/dev\/sda2, \/swapfile$/,
    );
    expect(startFault({ failSwapOn: false }, DEVICES)).toBeUndefined();
  });
  it('WS-09 starts with the heading alone', () => {
    expect(startFault({ failSwapOn: true }, HEADER)).toBeUndefined();
  });
  it('WS-11 refuses UnlimitedSwap', () => {
    const { faults } = checked({ memorySwap: { swapBehavior: 'UnlimitedSwap' } });
    expect(faults.map(describeConfigFault)).toEqual([
      'k.yaml:3: invalid configuration: memorySwap.swapBehavior "UnlimitedSwap" must be one of: "", "LimitedSwap" or "NoSwap"',
    ]);
  });
  it('WS-13 sets no limit for NoSwap', async () => {
    const { config, faults } = checked({ memorySwap: { swapBehavior: '' } });
    expect(faults).toEqual([]);
    expect(config.swapBehavior).toBe('');
    const none = await planned({ swapBehavior: '' }, BURSTABLE);
    expect(none).toEqual(swapMax(0, 0));
    expect(none).toEqual(await planned({ swapBehavior: 'NoSwap' }, BURSTABLE));
  });
});

/** `cpu,memory` */
const amounts = (text: string): Amounts => {
  if (text === '–') return {};
  const [cpu = '', memory = ''] = text.split(',');
  return { ...(cpu === '' ? {} : { cpu }), ...(memory === '' ? {} : { memory }) };
};
const of = (requests: string, limits: string): Resources => ({ requests: amounts(requests), limits: amounts(limits) });

describe('class of a pod', () => {
  const same = of('100m,100Mi', '100m,100Mi');

  it.each<[string, Resources[], Partial<KubeObject>, string]>([
    ['QC-01 the same throughout', [same], {}, 'Guaranteed'],
    ['QC-03 nothing', [of('–', '–')], {}, 'BestEffort'],
    ['QC-05 cpu of one container', [of('–', '–'), of('1,', '2,')], {}, 'Burstable'],
    ['QC-07 memory alone', [of(',100Mi', ',100Mi')], {}, 'Burstable'],
    ['QC-09 one of two differs', [of('1,100Mi', '2,100Mi'), same], {}, 'Burstable'],
    ['QC-11 more than asked for', [of('10m,100Mi', '100m,200Mi')], {}, 'Burstable'],
    [
      'QC-13 huge pages alone',
      [
        {
          requests: { cpu: '0', memory: '0', 'hugepages-2Mi': '1Gi' },
          limits: { cpu: '0', memory: '0', 'hugepages-2Mi': '1Gi' },
        },
      ],
      {},
      'BestEffort',
    ],
    ['QC-15 of the pod itself', [of('–', '–')], { spec: { resources: of('10m,100Mi', '10m,100Mi') } }, 'Guaranteed'],
    [
      'QC-17 of the pod, less than its limit',
      [of('–', '–')],
      { spec: { resources: of('10m,10Mi', '20m,50Mi') } },
      'Burstable',
    ],
    [
      'QC-19 of the pod, without limits',
      [of('5m,10Mi', '–')],
      { spec: { resources: of('10m,10Mi', '–') } },
      'Burstable',
    ],
    ['QC-21 an init container without', [same], { spec: { initContainers: [{ name: 'i' }] } }, 'Burstable'],
    ['QC-23 limits alone', [of('–', '100m,100Mi')], {}, 'Burstable'],
    ['QC-25 the stored class', [same], { status: { qosClass: 'Burstable' } }, 'Burstable'],
  ])('%s', (_name, containers, over, expected) => {
    const pod = podOf(...containers);
    expect(podQosClass({ ...pod, ...over, spec: { ...pod.spec, ...over.spec } })).toBe(expected);
  });
});
