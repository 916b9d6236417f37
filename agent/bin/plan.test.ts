import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { plan } from './plan.ts';

const KUBELET = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const PODS = `apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  terminationGracePeriodSeconds: 5
  containers:
  - name: c
    resources: {requests: {cpu: "2", memory: 1Gi}, limits: {cpu: "2", memory: 1Gi}}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: dns}
  spec:
    priority: 2000000000
    containers:
    - {name: d, resources: {requests: {memory: 1Gi}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: job}
  spec:
    containers:
    - {name: j, resources: {requests: {memory: 1Gi}}}
`;

async function run(argv: readonly string[], files: Readonly<Record<string, string>> = {}) {
  const printed: string[] = [];
  const errors: string[] = [];
  const code = await plan(argv, {
    readText: (path) => {
      const text = files[path];
      if (text === undefined) throw new Error(`ENOENT: no such file or directory, open '${path}'`);
      return text;
    },
    hostname: () => 'h',
    print: (line) => printed.push(line),
    printError: (line) => errors.push(line),
  });
  return { code, printed, errors };
}
const given = (what: string, ...more: string[]) => [what, '--config', 'k.yaml', '--pods', 'p.yaml', ...more];

describe('plan shutdown', () => {
  const config = `${KUBELET}shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n`;

  it('prints who ends when', async () => {
    const { code, printed } = await run(given('shutdown'), { 'k.yaml': config, 'p.yaml': PODS });
    expect(code).toBe(0);
    expect(printed).toEqual([
      'The system is asked to wait 30 s; these pods take 30 s at most.',
      'priority 0, 20 s, begins after 0 s at the latest:',
      '  shop/web  priority 0  grace 5 s',
      '  default/job  priority 0  grace 20 s',
      'priority 2000000000, 10 s, begins after 20 s at the latest:',
      '  default/dns  priority 2000000000  grace 10 s',
    ]);
  });

  it('prints the same as JSON, and skips phases without pods', async () => {
    const pods = 'kind: Pod\nmetadata: {name: dns}\nspec: {priority: 2000000000, containers: [{name: c}]}\n';
    const { printed } = await run(given('shutdown', '--json'), { 'k.yaml': config, 'p.yaml': pods });
    expect(JSON.parse(printed.join('\n'))).toEqual({
      requestedSeconds: 30,
      longestSeconds: 10,
      phases: [
        { priority: 0, periodSeconds: 20, beginsAtSeconds: 0, pods: [] },
        {
          priority: 2_000_000_000,
          periodSeconds: 10,
          beginsAtSeconds: 0,
          pods: [{ namespace: 'default', name: 'dns', priority: 2_000_000_000, graceSeconds: 10 }],
        },
      ],
    });
  });

  it('says that it is off', async () => {
    const { printed } = await run(given('shutdown'), { 'k.yaml': KUBELET, 'p.yaml': PODS });
    expect(printed).toEqual(['Graceful shutdown is off: pods end as the system ends them.']);
  });
});

describe('plan swap', () => {
  const config = `${KUBELET}memorySwap: {swapBehavior: LimitedSwap}\n`;

  it('prints the limit of each container', async () => {
    const argv = given('swap', '--memory', '4Gi', '--swap', '2Gi');
    const { printed } = await run(argv, { 'k.yaml': config, 'p.yaml': PODS });
    expect(printed).toEqual([
      'LimitedSwap: 2147483648 bytes of swap beside 4294967296 bytes of memory, cgroup v2',
      'shop/web  Guaranteed',
      '  c  memory.swap.max 0',
      'default/dns  Burstable, critical',
      '  d  memory.swap.max 0',
      'default/job  Burstable',
      '  j  memory.swap.max 536870912',
    ]);
  });

  it('reads the machine where no size is said', async () => {
    const meminfo = 'MemTotal:  4194304 kB\nSwapTotal:  2097152 kB\n';
    const files = { 'k.yaml': config, 'p.yaml': PODS, '/m/proc/meminfo': meminfo };
    const { printed } = await run(given('swap', '--root', '/m', '--json'), files);
    expect(JSON.parse(printed.join(''))).toMatchObject({
      memoryBytes: 2 ** 32,
      swapBytes: 2 ** 31,
      pods: [{}, {}, { containers: [{ name: 'j', kind: 'swapMax', bytes: 536_870_912 }] }],
    });
  });

  it('says what is wrong with a size', async () => {
    const { code, errors } = await run(given('swap', '--memory', 'lots'), { 'k.yaml': config, 'p.yaml': PODS });
    expect([code, errors]).toEqual([2, ['--memory: expected a quantity such as 40Gi, found "lots"']]);
  });
});

describe('plan topology', () => {
  let root: string;

  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'nodekeeper-plan-'));
    const write = (path: string, text: string): void => {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    };
    write('sys/devices/system/node/online', '0-1\n');
    for (const id of [0, 1]) {
      write(`sys/devices/system/node/node${id}/cpulist`, `${id * 2}-${id * 2 + 1}\n`);
      write(`sys/devices/system/node/node${id}/meminfo`, `Node ${id} MemTotal: 4194304 kB\n`);
    }
  });
  afterAll(() => rmSync(root, { recursive: true }));

  const config = `${KUBELET}topologyManagerPolicy: single-numa-node\n`;
  const three = `kind: Pod
metadata: {name: big}
spec: {containers: [{name: c, resources: {requests: {cpu: "3", memory: 1Gi}, limits: {cpu: "3", memory: 1Gi}}}]}
`;

  it('prints who is admitted, on which node, and why others are not', async () => {
    const files = { 'k.yaml': config, 'p.yaml': `${PODS}---\n${three}` };
    const { code, printed } = await run(given('topology', '--root', root), files);
    expect(code).toBe(0);
    expect(printed).toEqual([
      'single-numa-node, scope container, 2 NUMA nodes',
      'shop/web  admitted',
      '  c  NUMA node 0, cpus 0,1',
      'default/dns  admitted',
      '  d  any NUMA node',
      'default/job  admitted',
      '  j  any NUMA node',
      'default/big  refused: TopologyAffinityError: Resources cannot be allocated with Topology locality; best: any NUMA node (not preferred)',
    ]);
  });

  it('says what the machine does not tell', async () => {
    const closest = `${config}topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true"}\n`;
    const { code, errors } = await run(given('topology', '--root', root), { 'k.yaml': closest, 'p.yaml': PODS });
    expect([code, errors]).toEqual([2, ['topologyManagerPolicy: error getting NUMA distances from the machine']]);
  });
});

describe('what is wrong', () => {
  it('stands with its line and field, for both files at once', async () => {
    const files = {
      'k.yaml': `${KUBELET}shutdownGracePeriod: soon\n`,
      'p.yaml': `kind: Pod
metadata: {name: web}
spec:
  priority: high
  terminationGracePeriodSeconds: -1
  containers:
  - name: c
    resources:
      requests: {cpu: lots}
  - name: c
---
kind: Deployment
`,
    };
    const { code, errors, printed } = await run(given('shutdown'), files);
    expect([code, printed]).toEqual([2, []]);
    expect(errors).toEqual([
      expect.stringMatching(/^k\.yaml:3: shutdownGracePeriod/),
      'p.yaml:9: spec.containers[0].resources.requests.cpu: expected a quantity such as 500m or 1Gi, not negative, found "lots"',
      'p.yaml:10: spec.containers[1].name: expected a name that no other container has, found "c"',
      'p.yaml:4: spec.priority: expected a whole number of 32 bits, found "high"',
      'p.yaml:5: spec.terminationGracePeriodSeconds: expected a whole number of seconds, not negative, found -1',
      'p.yaml:12: kind: expected Pod, or a List of them, found "Deployment"',
    ]);
  });

  it.each([
    ['nothing', []],
    ['a plan nobody knows', given('everything')],
    ['files missing', ['shutdown', '--config', 'k.yaml']],
    ['a flag nobody knows', given('shutdown', '--fast')],
  ])('is told with the usage: %s', async (_name, argv) => {
    const { code, errors } = await run(argv);
    expect(code).toBe(2);
    expect(errors.join('\n')).toContain('Usage: nodekeeper-agent plan');
  });

  it('names files that cannot be read', async () => {
    const { errors } = await run(given('swap'));
    expect(errors).toEqual([
      expect.stringMatching(/^k\.yaml cannot be read/),
      expect.stringMatching(/^p\.yaml cannot be read/),
    ]);
  });

  it('is nothing where help is asked for', async () => {
    expect((await run(['--help'])).code).toBe(0);
  });
});
