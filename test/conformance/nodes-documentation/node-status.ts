import { advice, agent, cluster, differs, type Page, section, shown, story, testsOf } from './statement.ts';

const pressure = testsOf('agent/app/node-pressure.test.ts');

export const nodeStatus: Page = {
  title: 'Node status',
  url: 'https://kubernetes.io/docs/reference/node/node-status/',
  sections: [
    section('Node Status', advice('The status of nodes matters for a stable cluster.')),
    section(
      'Node status fields',
      shown(
        'The status has addresses, conditions, capacity with allocatable, and facts.',
        agent.status('sets every part of the status, Ready last'),
      ),
      shown('`kubectl describe node` shows it.', cluster.kubectl('lists, describes and discovers the resources')),
    ),
    section(
      'Addresses',
      shown(
        'Which addresses there are depends on the cloud or the machine.',
        testsOf('test/conformance/cloud-initialisation.test.ts')(
          'CN-01 (ours, D11) sets six labels and the address, removes the taint and emits Synced',
        ),
      ),
      shown(
        '`Hostname` is the name of the machine, or `--hostname-override`.',
        agent.nodeIp('RD-01 the node IP, then the host name'),
        testsOf('test/e2e/agent.test.ts')('enrols, registers, and its node becomes ready'),
      ),
      shown(
        '`ExternalIP` is reached from outside of the cluster. The cloud provider sets it.',
        testsOf('shared/fleet/instances/initialisation.rule.test.ts')(
          'puts the provided address first within its type',
        ),
        cluster.kubectl('shows addresses and machine facts in the wide list'),
      ),
      shown('`InternalIP` is reached inside of it.', agent.nodeIp('RD-01 the node IP, then the host name')),
    ),
    section(
      'Conditions',
      shown('`Ready` is True for a node that can run pods.', agent.conditions('SR-01 a first Ready without errors')),
      shown('It is False for one that is not healthy.', agent.conditions('SR-05 runtime before network, in brackets')),
      differs(
        'It is Unknown after a grace period without a sign of the node, 50 s by default.',
        {
          reason: 'The default is 40 s.',
          deviation: '`nodeMonitorGracePeriodSeconds` is 40, as Kubernetes documented it before 1.32',
        },
        cluster.heartbeat('HB-19 does not call exactly one grace late: marked in the pass at 55 s, not at 50 s'),
        story('one-node-dies'),
      ),
      shown(
        '`DiskPressure` is True while the disk is nearly full, else False.',
        agent.conditions('SP-07 DiskPressure none, then pressure', 'SP-09 DiskPressure True, then no pressure'),
      ),
      shown(
        '`MemoryPressure` is True while memory is low, else False.',
        agent.conditions('SP-03 MemoryPressure False, then pressure', 'SP-01 MemoryPressure none, then no pressure'),
        pressure('a node is under pressure from its first measurement below a threshold to some time after the last'),
      ),
      shown(
        '`PIDPressure` is True while there are too many processes, else False.',
        agent.conditions('SP-15 PIDPressure False, then pressure', 'SP-13 PIDPressure none, then no pressure'),
      ),
      shown(
        '`NetworkUnavailable` is True while the network of the node is not set up. A network plug-in sets it.',
        cluster.pages('without a network has its taint until it has one'),
      ),
      shown(
        'A cordoned node is shown as `SchedulingDisabled`, which is no condition but a field of its spec.',
        cluster.nodeKind('calls Ready=%s %s'),
        cluster.noSchedule('NS-06 a cordoned node has exactly the taint unschedulable'),
      ),
      shown(
        'A condition has type, status, reason, message and two times.',
        agent.conditions('SR-01 a first Ready without errors'),
      ),
      shown(
        'The control plane adds taints for problems of a node.',
        cluster.noSchedule('NS-04 adds one taint for each pressure'),
      ),
      shown(
        'A node that is Unknown for longer than the grace period gets `unreachable`.',
        cluster.heartbeat(
          'HB-03 marks a node without further status posts, keeps its heartbeat time, adds pressure conditions and marks pods',
        ),
        story('one-node-dies'),
      ),
      shown(
        'One that is not Ready gets `not-ready`.',
        cluster.noSchedule('NS-02 taints a node with Ready False exactly with not-ready'),
        cluster.noExecute('NX-16 taints by the state at its turn: queued as Ready False, Unknown by then'),
      ),
      shown('The scheduler places pods by taints.', cluster.filters('ST-01: an untolerated taint')),
      shown(
        'NoExecute taints may evict pods of the node.',
        cluster.eviction('TE-04 sets the condition of a pod without toleration and deletes it at once'),
      ),
      shown(
        'With a toleration a pod is placed there, and stays.',
        cluster.filters('ST-13 Exists without a key tolerates everything'),
        cluster.eviction('TE-06 never deletes a pod that tolerates the taint without seconds'),
      ),
    ),
    section(
      'Capacity and Allocatable',
      shown(
        'CPU, memory and the number of pods that a node can have.',
        agent.resources('SC-03 bounds pods by maxPods where cores would allow more'),
      ),
      shown(
        'Capacity is all of it, allocatable what pods may use.',
        agent.resources('SE-01 sums what the system, Kubernetes and hard eviction hold back of memory'),
        cluster.filters('SF-13 more than allocatable is not helped by preemption'),
      ),
      advice('How to reserve resources, on another page.'),
    ),
    section(
      'Info',
      shown(
        'Versions of kernel, kubelet and container runtime, and the operating system.',
        agent.info('a node has the facts of its machine, and the versions of its software'),
      ),
      shown(
        'The kubelet reads them from the machine and reports them.',
        agent.fleet('register and report the facts of this machine'),
      ),
    ),
    section(
      'Heartbeats',
      shown('They show whether a node is available. The cluster acts on failures.', story('one-node-dies')),
      shown('An update of the status is one.', cluster.heartbeat('HB-09 keeps a node that only posts status')),
      shown(
        'The Lease of the node in `kube-node-lease` is another one.',
        cluster.heartbeat('HB-07 keeps a node that beats without status, and marks it once the beat stops'),
        cluster.kubectl('lists one lease per machine, and the lease of our own probe'),
      ),
      shown(
        'A Lease costs less than a status.',
        testsOf('functions/heartbeat/work.test.ts')(
          'is one write unit, no read and no log line, and returns the stored Lease',
        ),
      ),
      shown(
        'The kubelet makes and updates both.',
        agent.run('registers, renews its Lease, reports, runs pods, and stops without terminating them'),
      ),
      shown(
        'It updates the status after a change, or when it did not for five minutes.',
        agent.statusReport('SG-03 unchanged within the time', 'SG-07 changed'),
        agent.statusPass('SF-01 updates every 10 s and reports every 5 m'),
      ),
      differs(
        'It renews the Lease every 10 s.',
        {
          reason:
            'Each wait is up to 4 % longer, as in the kubelet, and the first one depends on the name of the node.',
          deviation: 'The wait after the first heartbeat is derived from the node',
        },
        agent.lease(
          'LI-01 a lease of 40 s, the default, is renewed a quarter of it after the last round ended, or up to 4 % later',
        ),
      ),
      shown(
        'The two do not wait for each other.',
        testsOf('test/agent/full-disk.test.ts')(
          'is reported and beaten through, its pod is evicted and can be deleted, and all is well when it has room again',
        ),
        cluster.heartbeat('HB-07 keeps a node that beats without status, and marks it once the beat stops'),
      ),
      shown(
        'After a failure it tries again after 200 ms, doubling, 7 s at most.',
        agent.lease('$id waits $waits ms between tries'),
      ),
    ),
  ],
};
