import * as status from '../../kubernetes/status.ts';
import type { KubeObject } from '../types.ts';
import { LEASE_EXTRAS_BYTES_MAX, type LeaseChange, leaseReplacement } from './lease-record.ts';
import { LEASES } from './resource.ts';

/**
 * The change that replaces the row of a Lease. The Lease is complete and validated.
 *
 * @throws Status 422 if its metadata is so large that a heartbeat would cost two write units
 */
export function leaseChangeOf(lease: KubeObject): LeaseChange {
  const result = leaseReplacement(lease);
  if (result.kind === 'change') return result.change;
  throw status.invalid(LEASES, lease.metadata.name ?? '', [
    {
      reason: 'FieldValueTooLong',
      field: 'metadata',
      message: `Too long: labels, annotations and owners of a node's lease may take ${LEASE_EXTRAS_BYTES_MAX} bytes in all`,
    },
  ]);
}
