import { metadata } from '../../kubernetes/schema/meta.ts';
import {
  embedded,
  int32,
  kindStruct,
  microTime,
  pointer,
  type StructSchema,
  struct,
  text,
} from '../../kubernetes/schema/schema.ts';

const COORDINATION = 'io.k8s.api.coordination.v1';

const leaseSpec = struct(`${COORDINATION}.LeaseSpec`, 'Who holds a lease, and since when.', {
  holderIdentity: pointer(text('Who holds the lease; for the lease of a node, its name.')),
  leaseDurationSeconds: pointer(int32('Seconds the lease is good for, counted from the last renewal.')),
  acquireTime: pointer(microTime('When the holder acquired the lease.')),
  renewTime: pointer(microTime('When the holder last renewed it, by its own clock.')),
  leaseTransitions: pointer(int32('How often the lease changed its holder.')),
  strategy: pointer(text('How the next holder is chosen, where that is coordinated.')),
  preferredHolder: pointer(text('Who is asked to acquire the lease next.')),
});

export const lease: StructSchema = kindStruct(
  `${COORDINATION}.Lease`,
  { group: 'coordination.k8s.io', version: 'v1', kind: 'Lease' },
  'Lease defines a lease concept: its holder is alive. A node renews the one in kube-node-lease that bears its name.',
  {
    metadata,
    spec: embedded(leaseSpec, 'Who holds the lease, and since when.'),
  },
);
