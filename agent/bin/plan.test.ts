import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PlanIo, plan } from './plan.ts';

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
    priorityClassName: system-cluster-critical
    containers:
    - {name: d, resources: {requests: {memory: 1Gi}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: job}
  spec:
    containers:
    - {name: j, resources: {requests: {memory: 1Gi}}}
`;

async function run(argv: readonly string[], files: Readonly<Record<string, string>> = {}, io: Partial<PlanIo> = {}) {
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
    ...io,
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
      'Requested shutdown delay: 30 s. These pods need 30 s at most.',
      'priority 0, 20 s, begins after 0 s at the latest:',
      '  shop/web  priority 0  grace 5 s',
      '  default/job  priority 0  grace 20 s',
      'priority 2000000000, 10 s, begins after 20 s at the latest:',
      '  default/dns  priority 2000000000  grace 10 s',
    ]);
  });

  it('prints the same as JSON, and skips phases without pods', async () => {
    const pods =
      'kind: Pod\nmetadata: {name: dns}\nspec: {priorityClassName: system-cluster-critical, containers: [{name: c}]}\n';
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

  it.each([
    ['system-node-critical', '', 2_000_001_000],
    ['checkout', 'kind: PriorityClass\nmetadata: {name: checkout}\nvalue: 700\n', 700],
    ['', 'kind: PriorityClass\nmetadata: {name: usual}\nvalue: 50\nglobalDefault: true\n', 50],
  ])('uses the priority that the API computes from the class %j', async (name, classes, priority) => {
    const byPriority = `${KUBELET}shutdownGracePeriodByPodPriority:
- {priority: 0, shutdownGracePeriodSeconds: 60}
- {priority: 50, shutdownGracePeriodSeconds: 61}
- {priority: 700, shutdownGracePeriodSeconds: 62}
- {priority: 2000000000, shutdownGracePeriodSeconds: 63}
`;
    const spec = name === '' ? '' : `priorityClassName: ${name}, `;
    const pods = `kind: Pod\nmetadata: {name: web}\nspec: {${spec}containers: [{name: c}]}\n---\n${classes}`;
    const { printed } = await run(given('shutdown', '--json'), { 'k.yaml': byPriority, 'p.yaml': pods });
    const { phases } = JSON.parse(printed.join('\n')) as { phases: { priority: number; pods: unknown[] }[] };
    expect(phases.filter((phase) => phase.pods.length > 0)).toMatchObject([
      // 30 s is the API's default grace.
      { priority: Math.min(priority, 2_000_000_000), pods: [{ name: 'web', priority, graceSeconds: 30 }] },
    ]);
  });

  it('leaves a pod as the API returned it', async () => {
    const spec =
      '{priority: 700, priorityClassName: checkout, terminationGracePeriodSeconds: 7, containers: [{name: c}]}';
    const pods = `kind: Pod\nmetadata: {name: web, uid: 1-2}\nspec: ${spec}\n`;
    const { printed } = await run(given('shutdown'), { 'k.yaml': config, 'p.yaml': pods });
    expect(printed).toContain('  default/web  priority 700  grace 7 s');
  });

  it('refuses the pods that the API refuses, with the line of the field', async () => {
    const pods = `kind: Pod
metadata: {name: high}
spec:
  containers: [{name: c}]
  priority: 2000000000
---
kind: Pod
metadata: {name: lost}
spec:
  containers: [{name: c}]
  priorityClassName: absent
---
kind: PriorityClass
metadata: {name: too-high}
value: 1000000001
`;
    const { code, errors } = await run(given('shutdown'), { 'k.yaml': config, 'p.yaml': pods });
    expect(code).toBe(2);
    expect(errors).toEqual([
      'p.yaml:15: value: Forbidden: maximum allowed value of a user defined priority is 1000000000',
      'p.yaml:5: spec.priority: the integer value of priority (2000000000) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name',
      'p.yaml:11: spec.priorityClassName: no PriorityClass with name absent was found; add that PriorityClass to the file, or use pods as the API returns them',
    ]);
  });

  it('says that it is off', async () => {
    const { printed } = await run(given('shutdown'), { 'k.yaml': KUBELET, 'p.yaml': PODS });
    expect(printed).toEqual(['Graceful shutdown is off: the system terminates the pods without an order.']);
  });
});

/** The files of a machine under /m, and of a service on it. */
const CGROUP_V2 = {
  '/m/sys/fs/cgroup/cgroup.controllers': 'cpu memory\n',
  '/m/proc/self/cgroup': '0::/system.slice/a.service\n',
  '/m/sys/fs/cgroup/system.slice/a.service/memory.swap.max': 'max\n',
};

describe('plan limits', () => {
  const config = `${KUBELET}systemReserved: {memory: 1Gi}\nkubeReserved: {cpu: 500m}\npodPidsLimit: 50\nfailSwapOn: false\nmemorySwap: {swapBehavior: LimitedSwap}\n`;
  const pods = `kind: Pod
metadata: {name: web, namespace: shop, uid: u-1}
spec: {containers: [{name: c, resources: {requests: {cpu: 250m, memory: 1Gi}, limits: {cpu: "1", memory: 2Gi}}}]}
---
kind: Pod
metadata: {name: job}
spec: {containers: [{name: j}]}
`;
  const machine = {
    'k.yaml': config,
    'p.yaml': pods,
    '/proc/meminfo': 'MemTotal:        8388608 kB\nSwapTotal:       4194304 kB\n',
    '/proc/sys/kernel/pid_max': '4194304\n',
    '/proc/sys/kernel/threads-max': '1000\n',
    '/sys/devices/system/cpu/online': '0-3\n',
    '/proc/self/mountinfo': '30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n',
  };

  it('prints what is written for every group', async () => {
    const { code, printed } = await run(given('limits'), {
      ...machine,
      '/sys/fs/cgroup/cgroup.controllers': 'cpuset cpu io memory pids\n',
    });
    expect(code).toBe(0);
    expect(printed).toEqual([
      'cgroup v2 in /sys/fs/cgroup, controllers cpu, cpuset, memory, pids',
      'kubepods  cpu.weight 137, memory.max 7516192768, pids.max 1000',
      'kubepods/burstable  cpu.weight 10',
      'kubepods/besteffort  cpu.weight 1',
      'shop/web  Burstable',
      '  kubepods/burstable/podu-1  cpu.weight 10, cpu.max 100000 100000, memory.max 2147483648, pids.max 50',
      '  c  cpu.weight 10, cpu.max 100000 100000, memory.max 2147483648, memory.oom.group 1, memory.swap.max 536870912, oom_score_adj 875',
      'default/job  BestEffort',
      '  kubepods/besteffort/pod<uid>  cpu.weight 1, cpu.max max 100000, memory.max max, pids.max 50',
      '  j  cpu.weight 1, cpu.max max 100000, memory.max max, memory.oom.group 1, memory.swap.max 0, oom_score_adj 1000',
    ]);
  });

  it.each(['mounts', 'links'] as const)('prints how processes of the runtime exec see volumes: by %s', async (mode) => {
    const ours = 'apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\nruntime: exec\n---\n';
    const files = { ...machine, 'k.yaml': `${ours}${config}`, '/sys/fs/cgroup/cgroup.controllers': 'cpu\n' };
    const io = { mountMode: () => mode };
    expect((await run(given('limits'), files, io)).printed.at(-1)).toMatch(new RegExp(`^volumes by ${mode}`));
    const json = await run(given('limits', '--json'), files, io);
    expect(JSON.parse(json.printed.join('\n'))).toMatchObject({ volumes: mode });
    const elsewhere = Object.fromEntries(
      Object.entries(files).map(([path, text]) => [path.replace(/^\//, '/m/'), text]),
    );
    const { printed } = await run(given('limits', '--root', '/m'), elsewhere, io);
    expect(printed.join('\n')).not.toContain('volumes by');
  });

  it('says what is not enforced, and limits each process instead', async () => {
    const { printed } = await run(given('limits'), { ...machine, '/sys/fs/cgroup/cgroup.controllers': 'cpu pids\n' });
    expect(printed[1]).toBe(
      'WARNING: cgroup v2 has no controller cpuset, memory for pods, so these limits are not enforced; memory limits apply to each process (RLIMIT_DATA)',
    );
    expect(printed).toContain('  c  cpu.weight 10, cpu.max 100000 100000, oom_score_adj 875, RLIMIT_DATA 2147483648');
    expect(printed).toContain('    not enforced: memory.max 2147483648, memory.oom.group 1');
    const none = await run(given('limits'), { ...machine, '/proc/self/mountinfo': '' });
    expect(none.printed.slice(0, 2)).toEqual([
      'No control groups',
      'WARNING: limits of pods are not enforced by control groups (cgroup v2 is not mounted); memory limits apply to each process (RLIMIT_DATA)',
    ]);
  });
});

describe('plan swap', () => {
  const config = `${KUBELET}memorySwap: {swapBehavior: LimitedSwap}\n`;

  it('prints the limit of each container', async () => {
    const argv = given('swap', '--memory', '4Gi', '--swap', '2Gi', '--cgroup', '2');
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
    const files = { 'k.yaml': config, 'p.yaml': PODS, '/m/proc/meminfo': meminfo, ...CGROUP_V2 };
    const { printed } = await run(given('swap', '--root', '/m', '--json'), files);
    expect(JSON.parse(printed.join(''))).toMatchObject({
      memoryBytes: 2 ** 32,
      swapBytes: 2 ** 31,
      cgroupVersion: 2,
      swapController: true,
      pods: [{}, {}, { containers: [{ name: 'j', kind: 'swapMax', bytes: 536_870_912 }] }],
    });
  });

  it('treats a pod with limits only as Guaranteed, as the API derives its requests', async () => {
    const pods =
      'kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, resources: {limits: {cpu: 1, memory: 1Gi}}}]}\n';
    const argv = given('swap', '--memory', '4Gi', '--swap', '2Gi', '--cgroup', '2');
    const { printed } = await run(argv, { 'k.yaml': config, 'p.yaml': pods });
    expect(printed.slice(1)).toEqual(['default/p  Guaranteed', '  c  memory.swap.max 0']);
  });

  const V1 = { '/m/sys/fs/cgroup/memory/memory.limit_in_bytes': '1\n' };
  const V1_SWAP = { ...V1, '/m/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes': '1\n' };
  const { '/m/sys/fs/cgroup/system.slice/a.service/memory.swap.max': _, ...V2_NO_SWAP } = CGROUP_V2;
  it.each<[string, Readonly<Record<string, string>>, string]>([
    ['cgroup v2', CGROUP_V2, 'memory.swap.max 536870912'],
    ['cgroup v2 without a swap controller', V2_NO_SWAP, 'not written'],
    // The memory limit of a container that has none.
    ['cgroup v1', V1_SWAP, 'memory and swap 0'],
    ['cgroup v1 without a swap controller', V1, 'not written'],
  ])('limits swap by the cgroups of the machine: %s', async (title, cgroup, limit) => {
    const files = { 'k.yaml': config, 'p.yaml': PODS, ...cgroup };
    const { printed } = await run(given('swap', '--root', '/m', '--memory', '4Gi', '--swap', '2Gi'), files);
    expect([printed[0]?.split('memory, ').at(-1), printed.at(-1)]).toEqual([title, `  j  ${limit}`]);
  });

  it('says what it cannot find out about cgroups', async () => {
    const files = { 'k.yaml': config, 'p.yaml': PODS };
    const sizes = ['--memory', '4Gi', '--swap', '2Gi', '--root', '/m'];
    expect((await run(given('swap', ...sizes), files)).errors).toEqual([
      '/m/sys/fs/cgroup has no readable memory cgroup; pass --cgroup',
    ]);
    expect((await run(given('swap', ...sizes, '--cgroup', '3'), files)).errors).toEqual([
      '--cgroup: expected 1 or 2, found "3"',
    ]);
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

  it('reports which facts of the machine are missing', async () => {
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
      'p.yaml:12: kind: expected Pod, PriorityClass, or a List of them, found "Deployment"',
    ]);
  });

  it.each([
    ['nothing', []],
    ['an unknown plan', given('everything')],
    ['files missing', ['shutdown', '--config', 'k.yaml']],
    ['an unknown flag', given('shutdown', '--fast')],
  ])('is reported with the usage: %s', async (_name, argv) => {
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
