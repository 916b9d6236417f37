import { advice, cluster, differs, notHere, type Page, section, shown, story, testsOf } from './statement.ts';

const tolerance = testsOf('shared/fleet/nodes/taint.test.ts');
const defaults = testsOf('shared/fleet/nodes/taint.test.ts');
const cloudTaint = testsOf('test/conformance/cloud-initialisation.test.ts');
const rules = testsOf('shared/scheduling/rules.test.ts');
const evictions = testsOf('test/controllers/evictions.test.ts');
const validation = testsOf('test/conformance/validation/validation.test.ts');

export const taints: Page = {
  title: 'Taints and tolerations',
  url: 'https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/',
  sections: [
    section(
      'Taints and Tolerations',
      shown(
        'Node affinity attracts pods, taints repel them.',
        cluster.filters('SA-03 In', 'ST-01: an untolerated taint'),
      ),
      shown(
        'A toleration lets the scheduler use a node with that taint.',
        cluster.filters('ST-13 Exists without a key tolerates everything'),
      ),
      shown(
        'It does not make it use the node: other conditions count too.',
        cluster.filters('SF-13 more than allocatable is not helped by preemption', 'SA-13 the selector must match too'),
      ),
      shown(
        'A node gets no pod that does not tolerate all of its taints.',
        cluster.filters('ST-05 every taint needs a toleration'),
      ),
    ),
    section(
      'Concepts',
      shown(
        '`kubectl taint` adds a taint with key, value and effect, and removes it.',
        cluster.kubectl('labels, cordons, uncordons and taints, without effect on heartbeats'),
      ),
      shown('No pod is placed there without a matching toleration.', cluster.filters('ST-01: an untolerated taint')),
      shown(
        'A toleration of the pod with `Equal` and the value matches, or with `Exists`.',
        cluster.pages('is tolerated by Equal with its value, or by Exists, and repels others until it is removed'),
      ),
      shown(
        'A pod with `spec.nodeName` gets there without the scheduler, whatever NoSchedule taints there are.',
        cluster.pages('with NoSchedule does not keep away a pod that names its node'),
      ),
      shown(
        'With a NoExecute taint it is then evicted.',
        cluster.pages('with NoExecute evicts a pod that names its node, unless it is tolerated'),
        testsOf('agent/rules/pod-admission.test.ts')(
          'keeps out who does not tolerate NoExecute, and minds no other effect',
        ),
      ),
      shown('The default operator is `Equal`.', tolerance('no operator means Equal')),
      shown(
        'A toleration matches if key and effect are the same, and the operator is `Exists`, without a value,',
        tolerance('Exists on the key ignores the value', 'another effect does not'),
        validation('are refused for each constraint with the cause of upstream'),
      ),
      shown(
        'or `Equal`, with the same value.',
        tolerance('Equal asks for the value', 'Equal with another value does not match'),
      ),
      shown(
        'Without a key the operator is `Exists`, which matches all.',
        tolerance('Exists without key matches everything'),
      ),
      shown(
        'Without an effect all effects match.',
        cluster.pages('is tolerated by Equal with its value, or by Exists, and repels others until it is removed'),
      ),
      shown(
        'NoExecute: pods without a toleration are evicted at once,',
        cluster.eviction('TE-04 sets the condition of a pod without toleration and deletes it at once'),
      ),
      shown(
        'those that tolerate it without `tolerationSeconds` stay for ever,',
        cluster.eviction('TE-06 never deletes a pod that tolerates the taint without seconds'),
      ),
      shown(
        'and others stay for that time, and are evicted then.',
        cluster.eviction('TE-26 deletes at 0 s, at 1 s and never, by each pod’s toleration'),
        story('toleration-edges'),
      ),
      shown(
        'NoSchedule: no new pods. Those that run there stay.',
        cluster.filters('ST-01: an untolerated taint'),
        cluster.eviction('TE-50 NoSchedule taints and labels change nothing'),
      ),
      shown(
        'PreferNoSchedule: the node is avoided, without a promise.',
        cluster.filters('ST-09 PreferNoSchedule rejects nothing'),
        cluster.scores('SC-19 PreferNoSchedule taints'),
      ),
      shown(
        'Several taints and tolerations filter: what is not tolerated has its effect.',
        cluster.pages('that is not tolerated, beside two that are, keeps a new pod away and leaves the running one'),
        rules('that is a preference counts for %j in %i'),
      ),
      shown(
        'An example: three taints, two tolerated. A new pod is not placed, a running one stays.',
        cluster.pages('that is not tolerated, beside two that are, keeps a new pod away and leaves the running one'),
      ),
      shown(
        '`tolerationSeconds` is how long a pod stays after the taint was added.',
        cluster.eviction('TE-18 does not delete a pod that tolerates the new taint for 100 s'),
        testsOf('test/property/pod-eviction.test.ts')(
          'deletes a pod with s seconds in [s, s + 2 periods], through any of our taint swaps',
        ),
      ),
      shown(
        'If the taint is removed before, the pod stays.',
        cluster.eviction('TE-20 does not delete a pod if the taint is removed before the second is over'),
        evictions('are kept when the taint is removed in time, with an event'),
      ),
    ),
    section(
      'Numeric comparison operators',
      differs(
        '`Gt` and `Lt` compare the value of the taint with that of the toleration, as integers, for thresholds.',
        { reason: 'They work without a feature gate.', deviation: 'operators `Lt` and `Gt`' },
        cluster.pages('matches taints above its value, or below it, that repel or evict'),
        tolerance('taint value "11" Gt "10" is true', 'taint value "5" Lt "10" is true'),
      ),
      shown(
        'The API requires an integer in the toleration.',
        cluster.pages('with the value high is refused', 'with the value 007 is refused'),
      ),
      shown(
        'The value of a taint is not checked; one that is no integer is not matched.',
        cluster.pages('does not match a taint with another value than an integer'),
        tolerance('taint value "five" Lt "10" is false'),
      ),
      shown(
        'Values are signed integers of 64 bits.',
        tolerance(
          'taint value "9223372036854775807" Gt "9223372036854775806" is true',
          'taint value "9223372036854775808" Gt "1" is false',
        ),
      ),
      shown(
        'They work with all effects.',
        cluster.pages(
          'matches taints above its value, or below it, that repel or evict',
          'matches a taint that is avoided',
        ),
      ),
      notHere('Before the gate is turned off, pods that use them are to be removed.', 'There is no gate.'),
    ),
    section(
      'Example Use Cases',
      shown(
        'Nodes for some users: a taint, with a toleration and a label with an affinity for their pods.',
        cluster.filters('ST-03 another value', 'SA-01: a node selector'),
        story('pods-find-nodes'),
      ),
      shown(
        'Nodes with special hardware: a taint, tolerated by pods that need it.',
        cluster.filters('ST-01: an untolerated taint', 'SF-17: a resource that the node does not list is 0'),
      ),
      notHere(
        'The plug-in ExtendedResourceToleration adds that toleration.',
        'It does not exist here, and is off by default upstream. A MutatingAdmissionPolicy can do it.',
      ),
      advice('Evictions by taints, and thresholds of reliability, which other sections are about.'),
    ),
    section(
      'Taint based Evictions',
      shown(
        '`not-ready` is the taint of Ready False.',
        cluster.noSchedule('NS-02 taints a node with Ready False exactly with not-ready'),
      ),
      shown(
        '`unreachable` is that of Ready Unknown.',
        cluster.noExecute(
          'NX-10 changes not-ready for unreachable in the very pass that finds the node silent, and keeps its time (D6)',
        ),
        story('one-node-dies'),
      ),
      shown(
        '`memory-pressure`, `disk-pressure` and `pid-pressure` are those of the conditions.',
        cluster.noSchedule('NS-04 adds one taint for each pressure'),
      ),
      shown(
        '`network-unavailable` is that of a node without a network.',
        cluster.pages('without a network has its taint until it has one'),
      ),
      shown(
        '`unschedulable` is that of a cordon.',
        cluster.noSchedule('NS-06 a cordoned node has exactly the taint unschedulable'),
      ),
      differs(
        '`uninitialized` is that of a node which a cloud provider has to initialise. The kubelet removes it then.',
        {
          reason: 'The controller of the cloud removes it, as in the code of Kubernetes.',
        },
        cloudTaint(
          'CN-13 removes the taint whatever its effect',
          'CN-03 leaves node and taint when there is no metadata, without trying again',
        ),
      ),
      shown(
        'NoExecute is the effect of `not-ready` and `unreachable`, which evict.',
        cluster.noExecute('NX-08 changes unreachable for not-ready when the node posts Ready False'),
        story('not-ready-then-silent'),
      ),
      shown(
        'The taint is removed when the node is well again.',
        cluster.noExecute('NX-02 lifts the taint of a node that is Ready again'),
        story('mass-recovery'),
      ),
      shown(
        'A node that is cut off learns of the deletion when it is connected again. Its pods may run until then.',
        story('stateful-pod-on-silent-node'),
        testsOf('test/e2e/agent-fleet.test.ts')(
          'are detected when killed: Unknown, evicted, and Ready again after a restart',
        ),
      ),
      shown(
        'Taints are added at a limited rate, and with it evictions.',
        testsOf('test/property/monitor.test.ts')(
          'L3 limits the taints of every zone, L4 taints no node while all zones are fully disrupted, and slowly after',
        ),
        story('half-a-large-zone-dark'),
      ),
      shown(
        '`tolerationSeconds` for `unreachable` is how long a pod waits for its node.',
        story('dead-node-is-replaced'),
      ),
      differs(
        'Pods get tolerations of 300 s for `not-ready` and `unreachable`, unless they have some.',
        {
          reason: 'The seconds are a setting, `podEvictionTimeoutSeconds`.',
          deviation: '`podEvictionTimeoutSeconds` is the toleration added to pods without one',
        },
        cluster.defaults(
          'DT-01 any pod without tolerations gets not-ready, then unreachable, 300 s each',
          'DT-03 keeps not-ready 700 s and appends unreachable',
        ),
      ),
      shown(
        'So they stay for five minutes after the problem was detected.',
        cluster.legacy('LG-01 (ours) a default pod is deleted 300 s after the taint, not earlier'),
      ),
      shown(
        'Pods of DaemonSets tolerate both without a time.',
        cluster.placement('without fields is any node, with the tolerations of daemons'),
        defaults('adds nothing to what the pods of a DaemonSet bring'),
      ),
      shown('They are never evicted for them.', cluster.eviction('TE-46 a DaemonSet pod stays on an unreachable node')),
      notHere(
        'Taint eviction is a controller of its own since 1.29, and can be turned off.',
        'The function `evictor` does it, and cannot be turned off; `podEvictionTimeoutSeconds` can be long.',
      ),
    ),
    section(
      'Taint Nodes by Condition',
      shown(
        'Conditions of a node become NoSchedule taints.',
        cluster.nodeChanges('follows conditions, cordon and labels in one write'),
        cluster.noSchedule('NS-04 adds one taint for each pressure'),
      ),
      shown(
        'The scheduler reads taints, not conditions.',
        testsOf('test/conformance/scheduler-queue.test.ts')('SQ-17: a condition does not, the taint does'),
      ),
      shown(
        'A node with disk pressure gets a taint and no new pods.',
        cluster.pages('with disk pressure gets no pod that does not tolerate its taint'),
      ),
      shown(
        'A toleration ignores such a condition.',
        cluster.pages('with disk pressure gets no pod that does not tolerate its taint'),
      ),
      notHere(
        'Pods that are not BestEffort get a toleration of memory pressure.',
        'Upstream the plug-in PodTolerationRestriction does that, which is off by default and does not exist here.',
      ),
      shown(
        'BestEffort pods are not placed on a node with memory pressure.',
        testsOf('agent/app/eviction.test.ts')(
          'refuses a new BestEffort pod and admits others, until the transition period is over',
        ),
        cluster.filters('ST-01: an untolerated taint'),
      ),
      shown(
        'Pods of DaemonSets tolerate the three pressures, a cordon, and no network where they use that of the host.',
        cluster.placement(
          'without fields is any node, with the tolerations of daemons',
          'on the network of the host tolerates a node without a network',
        ),
        cluster.daemons('WS-07 get one without a network only on the host network: %s'),
      ),
      shown(
        'A DaemonSet may have other tolerations beside them.',
        cluster.placement('replaces an equal toleration %s: %s'),
      ),
    ),
    section(
      'Device taints and tolerations',
      notHere(
        'Single devices are tainted, with dynamic resource allocation.',
        'There are no ResourceSlices and ResourceClaims.',
      ),
    ),
  ],
};
