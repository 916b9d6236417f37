import { LEASE_NAMESPACE } from '../kinds/leases/resource.ts';
import type { MatchedRequest } from './match.rule.ts';

/** The renewal of a node's Lease. Policies and webhooks do not see it: it is one write without a read. */
export const renewalOfNode: MatchedRequest = {
  operation: 'UPDATE',
  group: 'coordination.k8s.io',
  version: 'v1',
  resource: 'leases',
  subresource: '',
  equivalents: [],
  name: '',
  namespace: LEASE_NAMESPACE,
  object: undefined,
  oldObject: undefined,
};
