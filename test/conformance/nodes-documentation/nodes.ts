import { advice, agent, cluster, differs, notHere, type Page, section, shown, story, testsOf } from './statement.ts';

const identity = testsOf('test/e2e/node-identity.test.ts');
const kubelet = testsOf('test/e2e/kubelet-bootstrap.test.ts');
const beats = testsOf('test/e2e/agent-heartbeat.test.ts');
const config = testsOf('agent/adapters/config/load-config.test.ts');
const cidrs = testsOf('functions/object-stream/node-cidrs.test.ts');
const ranges = testsOf('test/conformance/range-allocator.test.ts');
const cloud = testsOf('test/conformance/cloud-node.test.ts');
const evictions = testsOf('test/controllers/evictions.test.ts');
const topology = testsOf('test/conformance/agent/topology.test.ts');

export const nodes: Page = {
  title: 'Nodes',
  url: 'https://kubernetes.io/docs/concepts/architecture/nodes/',
  sections: [
    section(
      'Nodes',
      shown(
        'Pods run on nodes, which are machines or virtual machines.',
        agent.fleet('run a pod that names their node'),
      ),
      advice('The control plane manages nodes, which have what pods need.'),
      shown(
        'A cluster may have one node or several.',
        testsOf('functions/scheduler/rule.test.ts')(
          'chooses the better of two nodes, and the only one that is feasible',
        ),
      ),
      shown(
        'A node runs a kubelet, a container runtime and kube-proxy. The agent is all three.',
        agent.run('registers, renews its Lease, reports, runs pods, and stops without terminating them'),
        testsOf('test/agent/services.test.ts')(
          'are reached from each machine, and connections are balanced over all endpoints',
        ),
      ),
    ),
    section(
      'Management',
      shown(
        'A kubelet registers its own Node.',
        beats('enrols, registers and sends a heartbeat within its first round'),
        kubelet('a kubelet joins, renews its Lease, is limited to its own objects, and rotates its certificate'),
      ),
      shown(
        'A person may add a Node.',
        cluster.kubectl('creates a node by hand, marks it as never started, and deletes it'),
      ),
      shown(
        'A new Node is validated.',
        cluster.nodeKind('is refused with a bad name', 'is refused for each fault of its taints'),
      ),
      shown(
        'A Node with a name and labels alone is stored.',
        cluster.nodeKind('is stored as an API server prints it, with the taint of a node not seen ready'),
      ),
      shown(
        'A Node may run pods once a healthy kubelet of its name reports; until then it is not used.',
        cluster.nodeChanges('removes the taint of creation at the first Ready, and does nothing after its own write'),
        cluster.pages('that no machine has reported gets no pod before it is Ready'),
      ),
      shown('An unhealthy Node stays, and is checked further.', story('never-posted')),
      shown(
        'A person or a controller deletes it, nothing else does.',
        cloud('CL-11 (ours, D11) never deletes a node without providerID: EC2 was not asked about it'),
        cluster.kubectl('creates a node by hand, marks it as never started, and deletes it'),
      ),
      shown('The name of a Node is a DNS subdomain.', cluster.nodeKind('is refused with a bad name')),
    ),
    section(
      'Node name uniqueness',
      shown('Two Nodes cannot have one name at the same time.', cluster.pages('of a name that is used is refused')),
      differs(
        'A Node of the same name counts as the same machine, with its state and attributes.',
        { reason: 'A Node that was created again under its name starts with new state.', deviation: '**D2**' },
        cluster.heartbeat('HB-27 does not let a re-created node inherit silence: it has its own startup grace (D2)'),
        identity('does not take over a name, unless it was created for that'),
      ),
      shown(
        'A machine that changed much is deleted and added again.',
        cluster.kubectl('registers a machine again after its node was deleted'),
        cluster.nodeChanges('emits the registration of a Node that is created again under its name'),
      ),
    ),
    section(
      'Self-registration of Nodes',
      shown(
        'A kubelet registers its Node, which is the default.',
        agent.registers('registers once per process, however often it is requested'),
        config('has the defaults of a kubelet'),
      ),
      shown(
        '`--kubeconfig` has the credentials.',
        kubelet('a kubelet joins, renews its Lease, is limited to its own objects, and rotates its certificate'),
        identity('turns a bootstrap token into an identity, and sends heartbeats with tokens of its own'),
      ),
      shown(
        '`--cloud-provider`: an external provider sets the facts of the machine.',
        agent.nodeIp('RD-05 only the host name where an external cloud provider will say the rest'),
        agent.registration('RI-05 has unschedulable before uninitialized'),
      ),
      shown(
        '`--register-with-taints` registers the Node with taints.',
        config('reads taints from a flag'),
        cluster.machine('NR-18 creates itself with taints'),
      ),
      shown(
        'Without `--register-node` nothing is registered.',
        agent.registers('sends nothing where the Node is registered by others'),
      ),
      shown(
        '`--node-ip` is one address of each family.',
        testsOf('agent/rules/node-ip.test.ts')('may be one address of each family, in their order'),
      ),
      shown(
        'Without it the default address of IPv4 is used, and that of IPv6 where there is none.',
        agent.nodeIp('RD-07 DNS knows both families: IPv4 is preferred', 'RD-09 DNS knows IPv6 only'),
      ),
      shown(
        '`--node-labels` are set at the registration, within the limits of NodeRestriction.',
        agent.labels('RN-05 node-role.kubernetes.io/worker: accepted false'),
        cluster.machine('NR-20 does not create itself with restricted labels, and lists them sorted'),
      ),
      shown(
        '`--node-status-update-frequency` is the period of status.',
        agent.statusPass('SF-01 updates every 10 s and reports every 5 m'),
      ),
      shown(
        'A kubelet may create and change its own Node only.',
        cluster.machine('NR-28 does nothing to another node'),
      ),
      shown(
        'Changed `--node-labels` have no effect on a Node that exists.',
        agent.registration('RL-07 gets no configured label'),
      ),
      shown(
        'A Node that is registered again has lost its pods.',
        cluster.orphans(
          'GC-24 are deleted in the first tick from 40 s on, marked Failed with the reason first, without grace period',
        ),
      ),
    ),
    section(
      'Manual Node administration',
      shown(
        'kubectl creates and changes Nodes.',
        cluster.kubectl('labels, cordons, uncordons and taints, without effect on heartbeats'),
      ),
      shown(
        'Nodes are created by hand where `--register-node=false`.',
        agent.registers('sends nothing where the Node is registered by others'),
        cluster.kubectl('creates a node by hand, marks it as never started, and deletes it'),
      ),
      shown(
        'A registered Node may be changed too, such as its labels or a cordon.',
        agent.registration('RL-03 keeps a foreign label'),
      ),
      shown(
        'Node selectors of pods choose nodes by labels.',
        cluster.filters('SA-01: a node selector', 'SA-07 no match'),
      ),
      shown('A cordoned node gets no new pod.', cluster.filters('SA-23: a cordoned node')),
      shown('Pods that run there stay.', cluster.eviction('TE-50 NoSchedule taints and labels change nothing')),
      shown(
        '`kubectl cordon` does it.',
        cluster.kubectl('labels, cordons, uncordons and taints, without effect on heartbeats'),
      ),
      shown(
        'A node is drained.',
        testsOf('test/e2e/kubectl-drain.test.ts')(
          'evicts the allowed pods, waits for the budget, leaves the daemon, and succeeds',
        ),
      ),
      shown('Pods of DaemonSets tolerate a cordon.', cluster.daemons('WS-05 get one although they are cordoned')),
    ),
    section(
      'Node status',
      shown(
        'The status has addresses, conditions, capacity with allocatable, and facts.',
        agent.status('sets every part of the status, Ready last'),
      ),
      shown('`kubectl describe node` shows it.', cluster.kubectl('lists, describes and discovers the resources')),
    ),
    section(
      'Node heartbeats',
      shown('Heartbeats show whether a node is available. The cluster acts on failures.', story('one-node-dies')),
      shown('An update of the status is one.', cluster.heartbeat('HB-09 keeps a node that only posts status')),
      shown(
        'A renewal of the Lease in `kube-node-lease` is another one.',
        cluster.heartbeat('HB-07 keeps a node that beats without status, and marks it once the beat stops'),
      ),
      shown('Each node has a Lease.', cluster.kubectl('lists one lease per machine, and the lease of our own probe')),
    ),
    section(
      'Node controller',
      shown(
        'It assigns a pod CIDR to a new node, if that is on.',
        ranges('RA-09 assigns the first block'),
        cidrs('are not assigned while no cluster CIDR is configured'),
      ),
      differs(
        'It asks the cloud about unhealthy nodes, and deletes those without a machine.',
        { reason: 'An unknown instance needs two answers.', deviation: '**D11**' },
        cloud(
          'CL-01 (ours, D11) deletes a not ready node without an instance, at the second answer',
          'CL-23 deletes an Unknown node with a terminated instance, at the first answer',
          'CL-03 keeps a not ready node with an existing instance',
        ),
      ),
      shown(
        'It sets Ready of an unreachable node to Unknown.',
        cluster.heartbeat('HB-15 turns Ready True of a node with its last heartbeat a year ago into Unknown'),
      ),
      differs(
        'It evicts the pods of a node that stays unreachable, by the API for evictions.',
        { reason: 'The pods are deleted, as in the code of Kubernetes: no PodDisruptionBudget holds that.' },
        story('dead-node-is-replaced'),
        cluster.eviction('TE-04 sets the condition of a pod without toleration and deletes it at once'),
      ),
      shown(
        'By default five minutes pass between Unknown and the first eviction.',
        cluster.legacy('LG-01 (ours) a default pod is deleted 300 s after the taint, not earlier'),
      ),
      shown(
        'It checks every node each 5 s, which can be configured.',
        cluster.heartbeat('HB-19 does not call exactly one grace late: marked in the pass at 55 s, not at 50 s'),
        cluster.policyPage('is policy.example.yaml, which is the default policy'),
      ),
    ),
    section(
      'Rate limits on eviction',
      shown(
        'One node per 10 s loses its pods, at the default rate of 0.1 per second.',
        testsOf('test/property/limiter.test.ts')('holds for any call times'),
        cluster.policyPage('is policy.example.yaml, which is the default policy'),
      ),
      shown(
        'The share of nodes that are not Ready decides, zone by zone, from 55 % on.',
        cluster.zones(
          'ZS-13 is PartialDisruption with 11 of 20 not ready, Normal with 10',
          'ZS-19 counts exactly the threshold as disruption: 55 of 100, not 54',
        ),
      ),
      shown(
        'In a zone of 50 nodes or less evictions then stop.',
        cluster.limiter('LM-02 taints no node in a small zone in partial disruption'),
        story('half-a-small-zone-dark'),
      ),
      shown(
        'In a larger one the rate is 0.01 per second.',
        cluster.zones(
          'ZS-25 taints in a partially disrupted zone at the secondary rate if it is large, and never if it is small',
        ),
        story('half-a-large-zone-dark'),
      ),
      shown(
        'Each zone has its own rate, because one may be cut off while the others are not.',
        evictions('taints the nodes of a failing zone one by one, each zone at its own rate'),
      ),
      shown(
        'A cluster without zones is one zone.',
        cluster.zones('ZS-01 keeps the zone of nodes without labels Normal'),
      ),
      shown(
        'A zone without a healthy node has the normal rate: its workload moves to the others.',
        cluster.limiter('LM-04 leaves the usual rate to a dark zone beside a Normal one'),
        story('one-zone-dark'),
      ),
      shown(
        'When all zones are unhealthy nothing is evicted.',
        cluster.zones('ZS-21 taints no node when all zones are dark'),
        story('all-zones-dark-and-back'),
      ),
      shown(
        'When some nodes return, the pods of the others are evicted.',
        evictions(
          'cancels all evictions when all zones are fully disrupted, and starts a new grace period when one recovers',
        ),
        cluster.limiter(
          'LM-06 resumes tainting at one node per second after total disruption, from a drained limiter (D3)',
        ),
      ),
      shown(
        'Pods that do not tolerate a NoExecute taint are evicted.',
        cluster.eviction(
          'TE-04 sets the condition of a pod without toleration and deletes it at once',
          'TE-06 never deletes a pod that tolerates the taint without seconds',
        ),
      ),
      shown(
        'A node with a problem gets a taint, so the scheduler does not use it.',
        cluster.noSchedule('NS-02 taints a node with Ready False exactly with not-ready'),
        cluster.filters('ST-01: an untolerated taint'),
      ),
    ),
    section(
      'Resource capacity tracking',
      shown(
        'A Node has the capacity of its machine.',
        agent.resources('SC-01 makes the whole capacity allocatable when nothing is reserved'),
      ),
      shown(
        'It is reported with the registration.',
        agent.fleet('register and report the facts of this machine'),
        testsOf('test/agent/node-status.test.ts')('registers with all of it, reports once, and is quiet after'),
      ),
      shown(
        'A Node that a person adds has the capacity that the person states.',
        cluster.nodeKind('keeps the status and taints it brings'),
      ),
      shown(
        'The requests of the pods of a node are not more than it has.',
        cluster.filters('SF-09 equal fits', 'SF-15 requests of several containers are added'),
      ),
      shown(
        'Containers of the kubelet count; other processes do not.',
        testsOf('shared/scheduling/snapshot.rule.test.ts')(
          'has the pods of a node with what they use, in whatever order they were added',
        ),
      ),
      shown(
        'Resources can be reserved for processes that are no pods.',
        agent.resources('SE-01 sums what the system, Kubernetes and hard eviction hold back of memory'),
      ),
    ),
    section(
      'Node topology',
      shown(
        'With a policy of the topology manager, resources are assigned by hints of topology.',
        topology('TS-07 admits one node of several in the scope container'),
        testsOf('agent/app/topology-admission.test.ts')(
          'keeps the resources of a pod from other pods until the pod is released',
        ),
      ),
    ),
    section(
      'Swap memory management',
      shown(
        'Swap requires the gate `NodeSwap` and `failSwapOn: false`.',
        agent.swap(
          'WB-11 gate off: no swap, and no configuration that asks for some',
          'WS-07 does not start where swap is on, unless configured to',
        ),
      ),
      shown(
        'Pods use swap only with a `swapBehavior` other than `NoSwap`.',
        agent.swap('WS-13 sets no limit for NoSwap'),
      ),
      advice('With swap on, secrets in tmpfs may be written to a disk.', 'A warning; see the page about swap.'),
      shown('`NoSwap` is the default, also without a configuration.', agent.swap('WB-09 empty')),
      shown(
        '`LimitedSwap` lets Burstable pods swap, and no others.',
        agent.swap('WB-01 limited, Burstable', 'WB-05 limited, BestEffort'),
      ),
      shown(
        'The limit is the share of the request in the memory of the machine, of its swap.',
        agent.swap('WL-05 request 2147483648 of 42949672960 with swap 5368709120'),
      ),
      shown(
        'A container with equal request and limit does not swap.',
        agent.swap('WB-03 a container with equal request and limit'),
      ),
      shown(
        'Swap is for cgroup v2.',
        testsOf('agent/rules/swap.test.ts')(
          'limits memory and swap together with cgroup v1, and nothing without a controller',
        ),
      ),
    ),
    section(
      "What's next",
      notHere('Nodes are added and removed by an autoscaler.', 'No machine is created: machines join.'),
      advice('Pages about other subjects.'),
    ),
  ],
};
