/** Lease (pkg/apis/coordination/validation/validation.go). */

import { forbiddenField, invalidValue, nonNegative, notSupported, required } from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { parseTimeMs } from '../../kubernetes/time.ts';
import { qualifiedNameErrors, subdomainName, validateObjectMetadata } from '../../kubernetes/validate-metadata.ts';
import type { KubeLease, LeaseSpec } from '../types.ts';

const STRATEGIES = ['OldestEmulationVersion'];

export function validateLeaseSpec(spec: LeaseSpec): Cause[] {
  const causes: Cause[] = [];
  if (spec.leaseDurationSeconds !== undefined && spec.leaseDurationSeconds <= 0) {
    causes.push(invalidValue('spec.leaseDurationSeconds', spec.leaseDurationSeconds, 'must be greater than 0'));
  }
  if (spec.leaseTransitions !== undefined) causes.push(...nonNegative('spec.leaseTransitions', spec.leaseTransitions));
  const { strategy } = spec;
  if (strategy !== undefined) {
    // Upstream repeats the name of the field.
    const field = 'spec.strategy.strategy';
    if (strategy.includes('/')) {
      for (const error of qualifiedNameErrors(strategy)) causes.push(invalidValue(field, strategy, error));
    } else if (!STRATEGIES.includes(strategy)) causes.push(notSupported(field, strategy, STRATEGIES));
  }
  if (spec.preferredHolder !== undefined && spec.preferredHolder !== '' && (spec.strategy ?? '') === '') {
    causes.push(forbiddenField('spec.preferredHolder', 'may only be specified if `strategy` is defined'));
  }
  for (const key of ['acquireTime', 'renewTime'] as const) {
    const text = spec[key];
    if (text !== undefined && parseTimeMs(text) === undefined) {
      causes.push(invalidValue(`spec.${key}`, text, 'must be a time in RFC 3339 format'));
    }
  }
  return causes;
}

export function validateLease(lease: KubeLease, old: KubeLease | undefined): Cause[] {
  const causes = validateObjectMetadata(lease, old, { namespaced: true, name: subdomainName });
  if (lease.spec !== undefined && (typeof lease.spec !== 'object' || lease.spec === null)) {
    return [...causes, required('spec')];
  }
  return [...causes, ...validateLeaseSpec(lease.spec ?? {})];
}
