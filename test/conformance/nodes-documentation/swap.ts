import { advice, agent, cluster, notHere, type Page, section, shown, testsOf } from './statement.ts';

const cgroups = testsOf('agent/rules/cgroup-values.test.ts');
const OF_THE_SYSTEM = 'Advice about the operating system: nothing of it is done by a kubelet.';
const NO_KUBELET_METRICS =
  'The agent has no /metrics/resource and no /stats/summary; the usage of a node comes with its heartbeat.';

export const swap: Page = {
  title: 'Swap memory management',
  url: 'https://kubernetes.io/docs/concepts/cluster-administration/swap-memory-management/',
  sections: [
    section(
      'Swap memory management',
      shown(
        'A node can be configured to use swap.',
        agent.swap('WS-07 does not start where swap is on, unless configured to'),
      ),
      advice('What swap is useful for.'),
    ),
    section(
      'Operating system support',
      shown(
        'A kubelet does not start on Linux with swap on, unless it is configured to.',
        agent.swap('WS-07 does not start where swap is on, unless configured to', 'WS-05 is on with devices'),
        testsOf('agent/app/start-checks.test.ts')('is refused with swap, unless that may be on'),
      ),
      notHere(
        'A kubelet does not start on Windows without swap.',
        'The agent does not look at the page file of Windows.',
      ),
    ),
    section(
      'How does it work?',
      shown(
        'Swap that is added later is seen at the next start.',
        agent.swap('WS-03 is off with the heading alone', 'WS-05 is on with devices'),
      ),
      shown(
        'With `failSwapOn: false` the kubelet starts where swap is on.',
        agent.swap('WS-07 does not start where swap is on, unless configured to'),
      ),
      shown(
        'By default containers get no swap.',
        agent.swap('WB-09 empty'),
        cgroups('has no limit where its spec has none, and no swap'),
      ),
      shown(
        '`memorySwap.swapBehavior` of the configuration decides.',
        agent.swap('WS-11 refuses UnlimitedSwap', 'WS-13 sets no limit for NoSwap'),
      ),
    ),
    section(
      'Swap behaviors',
      shown('Each node has its own behavior.', agent.swap('WB-07 none', 'WB-01 limited, Burstable')),
      shown('`NoSwap`: pods do not use swap.', agent.swap('WB-07 none')),
      shown('`LimitedSwap`: pods can use swap.', agent.swap('WB-01 limited, Burstable')),
      shown(
        'With `failSwapOn: false` and `NoSwap` pods use none, other processes may.',
        agent.swap('WB-07 none'),
        testsOf('agent/adapters/cgroup/pod-cgroups.test.ts')(
          'has the limits of its container, in the group of its pod',
        ),
      ),
    ),
    section(
      'Container runtime integration',
      shown(
        'The limit reaches the container by `memory.swap.max` of its control group.',
        cgroups('has the limits of its spec, and a share of the swap'),
        testsOf('agent/adapters/cgroup/unified-tree.test.ts')(
          'has the files of its controllers, if the kernel has them',
        ),
      ),
    ),
    section(
      'Node and container level metric statistics',
      notHere('`/metrics/resource` and `/stats/summary` of the kubelet have the use of swap.', NO_KUBELET_METRICS),
      notHere('cAdvisor has `machine_swap_bytes`.', 'There is no cAdvisor in the agent.'),
    ),
    section(
      'Using kubectl top --show-swap',
      notHere('`kubectl top nodes --show-swap` shows the use of swap.', 'Heartbeats have CPU and memory only.'),
      notHere('`kubectl top pods --show-swap` shows that of pods.', 'Pods are not measured (docs/clients.md).'),
    ),
    section(
      'Nodes to report swap capacity as part of node status',
      shown(
        '`status.nodeInfo.swap.capacity` has the swap of the machine.',
        agent.info('a node has the facts of its machine, and the versions of its software'),
        testsOf('agent/adapters/linux-machine/linux-machine.test.ts')('reads addresses, names and swap devices'),
      ),
      shown(
        'It is not set where the machine has none or does not know.',
        agent.info('a machine without swap has no capacity of swap'),
      ),
    ),
    section(
      'Swap discovery using Node Feature Discovery',
      notHere(
        'The add-on labels nodes that have swap.',
        'The add-on is a DaemonSet of others; labels of its nodes are kept.',
      ),
    ),
    section(
      'Risks and caveats',
      advice('Encrypt swap.', OF_THE_SYSTEM),
      advice('Swap makes a node less predictable, and its neighbours slower.'),
      shown(
        'The scheduler does not count swap.',
        cluster.filters('SF-17: a resource that the node does not list is 0'),
      ),
      advice('Its speed is that of the disk. Daemons of the system should have priority.', OF_THE_SYSTEM),
    ),
    section(
      'Memory-backed volumes',
      shown(
        'Secrets and volumes of medium `Memory` are files in memory.',
        testsOf('agent/adapters/volumes/memory-directory.test.ts')(
          'is below the first directory of the unit, in memory, and only for the agent',
        ),
        testsOf('test/agent/pod-volumes.test.ts')(
          'are shared by the containers of the pod, also in part, and removed with it',
        ),
      ),
      notHere(
        'They are mounted with `noswap`, where the kernel has it.',
        'systemd mounts the directory in memory, without that option: encrypt swap, or turn it off.',
      ),
      notHere(
        'The kubelet tries whether the kernel has it, and warns where it has not.',
        'It does not use the option.',
      ),
      advice('Encrypted swap is a matter of the operating system.', OF_THE_SYSTEM),
    ),
    section(
      'Evictions',
      shown(
        'The kubelet evicts pods before the machine has no memory left, by thresholds.',
        testsOf('agent/app/eviction.test.ts')(
          'evicts the largest pod, one per pass, with the status and the events of a kubelet',
        ),
      ),
      advice('With swap, thresholds should be a little below `vm.min_free_kbytes`.', OF_THE_SYSTEM),
    ),
    section(
      'Unutilized swap space',
      shown(
        'The share of a container follows from its request; that of Guaranteed pods stays unused.',
        agent.swap('WB-17 cgroup v1, Guaranteed', 'WL-05 request 2147483648 of 42949672960 with swap 5368709120'),
        agent.swap('assigns none to a Guaranteed pod'),
      ),
    ),
    section(
      'Disable swap for system-critical daemons',
      advice('Set `memory.swap.max=0` for the slice of the system.', OF_THE_SYSTEM),
    ),
    section(
      'Protect system-critical daemons for I/O latency',
      advice('Set `io.latency` for the slice of the system.', OF_THE_SYSTEM),
    ),
    section(
      'Swap and control plane nodes',
      advice('Nodes of the control plane should have no swap.', 'There are no such nodes.'),
    ),
    section('Use of a dedicated disk for swap', advice('Swap on a disk of its own.', OF_THE_SYSTEM)),
    section(
      'Swap-aware scheduling',
      shown(
        'The scheduler places pods by requests, and pods request no swap.',
        cluster.filters(
          'SF-15 requests of several containers are added',
          'SF-17: a resource that the node does not list is 0',
        ),
      ),
      shown(
        'A taint keeps pods away from nodes with swap.',
        cluster.filters('ST-01: an untolerated taint', 'ST-13 Exists without a key tolerates everything'),
      ),
    ),
    section('Selecting storage for optimal performance', advice('Use a fast disk.', OF_THE_SYSTEM)),
    section(
      'How is the swap limit being determined with LimitedSwap?',
      shown('Pods of BestEffort get none.', agent.swap('WB-05 limited, BestEffort')),
      shown('Guaranteed pods get none.', agent.swap('assigns none to a Guaranteed pod')),
      shown('Pods of a critical priority get none.', agent.swap('assigns none to a critical pod')),
      shown(
        'The limit is the share of the request in the memory of the machine, of its swap.',
        agent.swap('WL-01 request 1073741824 of 85899345920 with swap 4294967296'),
      ),
      shown(
        'A container with equal request and limit has none.',
        agent.swap('WB-03 a container with equal request and limit'),
      ),
    ),
  ],
};
