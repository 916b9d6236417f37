import { advice, agent, cluster, differs, type Page, section, shown, story, testsOf } from './statement.ts';

const run = testsOf('agent/app/shutdown/graceful-shutdown.test.ts');
const inhibitor = testsOf('agent/adapters/logind/logind.test.ts');
const windows = testsOf('test/agent/windows.test.ts');
const statefulSets = testsOf('test/e2e/workloads.test.ts');
const NOT_A_COMMAND = 'What people should know before they act.';

export const nodeShutdowns: Page = {
  title: 'Node shutdowns',
  url: 'https://kubernetes.io/docs/concepts/cluster-administration/node-shutdown/',
  sections: [
    section(
      'Node Shutdowns',
      advice('A node shuts down as planned, or without notice. Without a drain its workload may fail.'),
    ),
    section(
      'Graceful node shutdown',
      shown(
        'The kubelet notices a shutdown of the machine, and terminates its pods.',
        agent.run('reports the shutdown, terminates its pods, rejects new ones, and releases the lock'),
        inhibitor('receives the start of a shutdown, and ignores a signal without a boolean'),
      ),
      shown(
        'Pods terminate as they always do.',
        agent.shutdownRules('GP-13 its own'),
        testsOf('agent/app/shutdown/pod-termination.test.ts')(
          'acts group by group, lowest priority first, each pod with its own grace or less',
        ),
      ),
      shown(
        'Meanwhile it accepts no pod, also none that is bound to the node.',
        agent.pods('is every pod that is bound during a shutdown'),
        run('rejects pods from then on'),
      ),
    ),
    section(
      'Enabling graceful node shutdown',
      differs(
        'On Linux it is on, unless its gate is off.',
        { reason: 'On Linux the gate is not read: the two periods decide.' },
        run('is off without a grace period for pods'),
      ),
      shown(
        'It uses an inhibitor lock of systemd to delay the shutdown.',
        inhibitor('holds a lock that logind lists, until it is released, and again'),
        agent.shutdown('GI-01 more than enough'),
      ),
      shown(
        'On Windows it is on, unless its gate is off.',
        testsOf('agent/rules/system-defaults.test.ts')('without the gate of a graceful shutdown Windows has none'),
      ),
      shown(
        'On Windows the kubelet must be a service, which delays the preshutdown.',
        windows('is installed, registers, is Ready, and shuts down as a service before the machine does'),
      ),
      shown(
        'On Windows a shutdown is not cancelled.',
        run('does not start again on a system that announces a shutdown once'),
      ),
      shown(
        'A kubelet that is no service does not notice it, continues, and logs an error.',
        agent.shutdown('logs one error when the agent is no service'),
      ),
    ),
    section(
      'Configuring graceful node shutdown',
      shown(
        'Both periods are zero by default, so nothing is done. The installer of the agent sets them.',
        agent.shutdownRules('GM-03 both 0: off'),
        agent.shutdown('GE-11 nothing at all when it is off'),
        testsOf('agent/packaging/install.test.ts')(
          'turns graceful shutdown on, with the default grace for ordinary pods (%j)',
        ),
      ),
      shown(
        'The node becomes NotReady, and says that it is shutting down.',
        agent.run('reports the shutdown, terminates its pods, rejects new ones, and releases the lock'),
        agent.shutdown('GE-01 a shutdown'),
      ),
      shown('The scheduler then places no pod there.', cluster.filters('ST-01: an untolerated taint')),
      shown(
        'A pod that tolerates the taint is refused by the kubelet.',
        agent.pods('is every pod that is bound during a shutdown'),
      ),
      shown('It reports the condition and terminates pods at the same time.', agent.shutdown('GE-01 a shutdown')),
      shown(
        'Regular pods terminate first, then critical ones.',
        agent.shutdownRules('GG-01 users below critical'),
        agent.shutdown('GT-01 the next group begins when the one before is done'),
      ),
      shown(
        '`shutdownGracePeriod` is the whole delay.',
        agent.shutdownRules('asks the system for the sum of all periods'),
      ),
      shown(
        '`shutdownGracePeriodCriticalPods` is the part for critical pods, and not more than the whole.',
        agent.shutdownRules('GV-01 critical above total', 'GM-01 300 s, 120 s critical'),
      ),
      shown(
        'After a cancelled shutdown the node is Ready again. Pods that were terminated stay so.',
        run('accepts pods again, and holds the lock, when the shutdown is cancelled'),
        agent.shutdown('GE-03 a cancellation', 'GE-05 admission after a cancellation'),
      ),
      shown('30 s with 10 s for critical pods are 20 s and 10 s.', agent.shutdownRules('GM-05 30 s, 10 s critical')),
      shown(
        'Such pods have the reason `Terminated`, and the message that the node shuts down.',
        agent.shutdownRules('GS-01 running'),
      ),
    ),
    section(
      'Pod Priority based graceful node shutdown',
      shown(
        'The order follows the priorities of pods, if that is configured.',
        agent.shutdownRules('sorts configured buckets, lowest priority first'),
      ),
      shown(
        'It then has as many phases as are configured, each with its time.',
        agent.shutdown('GT-01 the next group begins when the one before is done'),
        testsOf('agent/rules/kill-request.test.ts')(
          'a shutdown ends groups from the lowest priority, each pod in the highest group that is not above it',
        ),
      ),
      shown(
        'A pod has the time of the highest value that is not above its priority.',
        agent.shutdownRules('GG-07 the border', 'GG-03 unset counts as 0, negative belongs to the lowest'),
      ),
      shown(
        'Not every class needs a value: pods between two share a group.',
        agent.shutdownRules('GG-09 below the lowest bucket', 'GG-05 one bucket contains all'),
      ),
      shown('A group without pods uses no time.', agent.shutdown('GT-03 an empty group uses no time')),
      shown(
        'Without a configuration there is no order by priority.',
        agent.shutdownRules('GM-03 both 0: off', 'GV-05 both forms at once'),
      ),
      differs(
        'The settings are the gate and `shutdownGracePeriodByPodPriority`.',
        { reason: 'The gate is not read.' },
        testsOf('agent/rules/shutdown-settings.test.ts')(
          '%i ms, %i ms of them for critical pods, and priorities %j are valid',
        ),
        agent.shutdownRules('sorts configured buckets, lowest priority first'),
      ),
      shown(
        'Metrics have the start and the end of the last shutdown.',
        testsOf('agent/app/shutdown/shutdown-record.test.ts')('writes the start, and then both times, in order'),
        agent.shutdown('GF-03 the shutdown before'),
      ),
    ),
    section(
      'Non-graceful node shutdown handling',
      shown(
        'A shutdown may not be noticed: without a lock, or with wrong settings.',
        agent.shutdown('GI-03 never granted'),
        story('stateful-pod-on-silent-node'),
      ),
      shown(
        'Pods of a StatefulSet then stay Terminating, and are not replaced.',
        statefulSets('replaces no pod of a StatefulSet or DaemonSet while the old one may run on a dead node'),
        story('stateful-pod-on-silent-node'),
      ),
      shown(
        'Their volumes stay attached.',
        cluster.volumes('FD-10 stays while a pod object uses it, terminating or not'),
      ),
      shown(
        'When the machine returns, its pods are deleted, and created elsewhere.',
        story('stateful-pod-on-silent-node'),
      ),
      differs(
        'When it does not, they stay Terminating for ever.',
        {
          reason: 'So it is, except for pods with `nodekeeper.dev/offline-stop-after`.',
          deviation: 'A terminating pod is not deleted again, except one with the annotation',
        },
        cluster.orphans(
          'GC-22 are deleted from an out-of-service node that is not Ready, and stay on one that is only unreachable',
        ),
        story('pod-that-must-not-run-twice'),
      ),
      shown(
        'A person may mark the Node with the taint `out-of-service`, NoExecute or NoSchedule.',
        cluster.podGc(
          'GC-22 terminating pods on not ready nodes with the out-of-service taint of any effect and value go',
        ),
        story('out-of-service'),
      ),
      shown(
        'Then its pods are deleted by force, unless they tolerate the taint.',
        cluster.orphans(
          'GC-22 are deleted from an out-of-service node that is not Ready, and stay on one that is only unreachable',
        ),
        story('out-of-service'),
      ),
      shown(
        'Their volumes are detached at once, so they can run elsewhere.',
        cluster.volumes(
          'is detached after its pod was deleted: two ticks from a stuck pod to a free volume',
          'is force-detached with its pod: removed from volumesAttached first, the attachment closed once EC2 reports it detached',
        ),
      ),
      advice('Before that, make sure that the machine is off.', NOT_A_COMMAND),
      shown('The person who added the taint removes it.', story('automatic-out-of-service')),
    ),
    section(
      'Forced storage detach on timeout',
      differs(
        'Volumes of a pod that is not deleted within six minutes are detached, if the node is unhealthy.',
        { reason: 'Volumes of the EBS driver only.', deviation: 'Only volumes of the EBS driver' },
        cluster.volumes(
          'FD-02 stays for six minutes and is detached just after them, without Force from a running machine',
        ),
        testsOf('functions/pod-gc/volumes/rule.test.ts')(
          'never detaches a mounted volume from a healthy node by timeout',
        ),
      ),
      advice('A pod that still writes to such a volume may damage it.', NOT_A_COMMAND),
      shown(
        'This can be turned off; the volume then stays attached.',
        cluster.volumes('FD-04 stays when detach on timeout is disabled, and is reported once'),
      ),
      shown(
        'Then the taint `out-of-service` is the way to free it.',
        testsOf('functions/pod-gc/volumes/rule.test.ts')(
          'detaches it at once when a user declared the node out of service, even a Ready one',
        ),
      ),
      advice('Other steps than these may damage data.', NOT_A_COMMAND),
    ),
  ],
};
