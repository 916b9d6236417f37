/** Lease (pkg/apis/coordination/validation/validation.go). */
import type { Cause } from '../status.ts';
import { parseTimeMs } from '../time.ts';
import type { KubeLease, LeaseSpec } from '../types.ts';
import { forbiddenField, invalidValue, nonNegative, required } from './causes.ts';
import { validateObjectMetadata } from './metadata.ts';
import { qualifiedNameErrors, subdomainName } from './names.ts';

const STRATEGIES = ['OldestEmulationVersion'];

export function validateLeaseSpec(spec: LeaseSpec): Cause[] {
  const causes: Cause[] = [];
  if (spec.leaseDurationSeconds !== undefined && spec.leaseDurationSeconds <= 0) {
    causes.push(invalidValue('spec.leaseDurationSeconds', spec.leaseDurationSeconds, 'must be greater than 0'));
  }
  causes.push(...nonNegative('spec.leaseTransitions', spec.leaseTransitions));
  if (spec.holderIdentity !== undefined && spec.holderIdentity === '') {
    causes.push(invalidValue('spec.holderIdentity', '', 'must not be empty'));
  }
  if (spec.strategy !== undefined) {
    const errors = STRATEGIES.includes(spec.strategy) ? [] : qualifiedNameErrors(spec.strategy);
    for (const error of errors) causes.push(invalidValue('spec.strategy', spec.strategy, error));
  }
  if (spec.preferredHolder !== undefined && spec.preferredHolder !== '' && (spec.strategy ?? '') === '') {
    causes.push(forbiddenField('spec.preferredHolder', 'may only be specified when `strategy` is defined'));
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
