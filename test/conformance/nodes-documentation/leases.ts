import { advice, agent, cluster, differs, notHere, type Page, section, shown, testsOf } from './statement.ts';

const elections = testsOf('shared/kinds/leases/elections.test.ts');

export const leases: Page = {
  title: 'Leases',
  url: 'https://kubernetes.io/docs/concepts/architecture/leases/',
  sections: [
    section(
      'Leases',
      advice('Leases coordinate the members of a distributed system.'),
      shown(
        'They are objects of `coordination.k8s.io`, for heartbeats of nodes and for elections.',
        cluster.kubectl('lists, describes and discovers the resources'),
      ),
    ),
    section(
      'Node heartbeats',
      shown(
        'Each Node has a Lease of its name in `kube-node-lease`.',
        agent.lease('LO-01 is created with holder, duration, time and owner'),
        cluster.kubectl('lists one lease per machine, and the lease of our own probe'),
      ),
      shown(
        'A heartbeat updates `spec.renewTime`.',
        agent.lease('LI-07 the first renewal happens at once'),
        testsOf('shared/kinds/leases/serve.test.ts')('keep microseconds and drop nulls'),
      ),
      differs(
        'The control plane uses this time to know whether the node is available.',
        { reason: 'It uses the time of the receipt, whatever the machine wrote.', deviation: '**D1**' },
        testsOf('functions/heartbeat/work.test.ts')('stores our receipt time, whatever time the machine writes'),
      ),
    ),
    section(
      'Leader election',
      shown(
        'A component that runs several times has one leader by a Lease.',
        elections(
          'has one holder of two that write on one version',
          'is renewed at one write unit, in the rounds of client-go',
        ),
      ),
      notHere(
        'Components of the control plane choose their leader in this way.',
        'Controllers are functions without a leader: each write has a condition (docs/decisions/0028-bindings-without-a-leader.md).',
      ),
    ),
    section(
      'API server identity',
      notHere('Each API server publishes a Lease in `kube-system`.', 'The API is a function, not a number of servers.'),
      notHere('They are found by a label, and have the name of a hash of the host name.', 'There are none.'),
      notHere('A server of the same host takes over its Lease.', 'There are none.'),
      notHere('Expired ones are deleted after an hour.', 'There are none.'),
      notHere('They can be turned off.', 'There are none.'),
    ),
    section(
      'Workloads',
      shown(
        'Your own programs may use Leases.',
        elections('has one holder of two that write on one version', 'is seen by watches when it is renewed'),
      ),
      advice('Leases should have names of their program, which do not collide.'),
    ),
  ],
};
