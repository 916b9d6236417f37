import type { Descriptions } from './descriptions.ts';

export const leases: Descriptions = {
  'coordination/v1.Lease': {
    '': 'Lease defines a lease concept: its holder is alive. A node renews the one in kube-node-lease that bears its name.',
    spec: 'Who holds the lease, and since when.',
  },
  'coordination/v1.LeaseSpec': {
    '': 'Who holds a lease, and since when.',
    holderIdentity: 'Who holds the lease; for the lease of a node, its name.',
    leaseDurationSeconds: 'Seconds the lease is good for, counted from the last renewal.',
    acquireTime: 'When the holder acquired the lease.',
    renewTime: 'When the holder last renewed it, by its own clock.',
    leaseTransitions: 'How often the lease changed its holder.',
    strategy: 'How the next holder is chosen, where that is coordinated.',
    preferredHolder: 'Who is asked to acquire the lease next.',
  },
};
