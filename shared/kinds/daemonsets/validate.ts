/** DaemonSet (pkg/apis/apps/validation/validation.go: ValidateDaemonSet and its updates). */

import {
  immutable,
  invalidValue,
  nonNegative,
  notDecremented,
  notSupported,
  required,
} from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { subdomainName, validateObjectMetadata } from '../../kubernetes/validate-metadata.ts';
import type { DaemonSetSpec, DaemonSetStatus, KubeDaemonSet } from '../types.ts';
import {
  shareValue,
  validateRunsForever,
  validateSelection,
  validateShare,
  validateTemplate,
} from '../validate-workloads.ts';

const COUNTS = [
  'currentNumberScheduled',
  'numberMisscheduled',
  'desiredNumberScheduled',
  'numberReady',
  'observedGeneration',
  'updatedNumberScheduled',
  'numberAvailable',
  'numberUnavailable',
  'collisionCount',
] as const;

const validateStatus = (status: DaemonSetStatus = {}, old: DaemonSetStatus = {}): Cause[] => [
  ...COUNTS.flatMap((name) => nonNegative(`status.${name}`, status[name])),
  ...notDecremented('status.collisionCount', status.collisionCount, old.collisionCount),
];

function validateStrategy(strategy: DaemonSetSpec['updateStrategy'] = {}): Cause[] {
  const field = 'spec.updateStrategy';
  const { type = '', rollingUpdate } = strategy;
  if (type === 'OnDelete') return [];
  if (type !== 'RollingUpdate') return [notSupported(field, strategy, ['RollingUpdate', 'OnDelete'])];
  if (rollingUpdate === undefined) return [required(`${field}.rollingUpdate`)];
  const { maxUnavailable, maxSurge } = rollingUpdate;
  const path = `${field}.rollingUpdate`;
  const causes = [
    ...validateShare(`${path}.maxUnavailable`, maxUnavailable),
    ...validateShare(`${path}.maxSurge`, maxSurge),
  ];
  const hasUnavailable = shareValue(maxUnavailable) !== 0;
  const hasSurge = shareValue(maxSurge) !== 0;
  if (hasUnavailable && hasSurge) {
    causes.push(invalidValue(`${path}.maxSurge`, maxSurge, 'may not be set when maxUnavailable is non-zero'));
  } else if (!hasUnavailable && !hasSurge) {
    causes.push(required(`${path}.maxUnavailable`, 'cannot be 0 when maxSurge is 0'));
  }
  return causes;
}

export function validateDaemonSet(set: KubeDaemonSet, old: KubeDaemonSet | undefined, subresource: string): Cause[] {
  const metadata = validateObjectMetadata(set, old, { namespaced: true, name: subdomainName });
  if (subresource === 'status') return [...metadata, ...validateStatus(set.status, old?.status)];
  const spec = set.spec ?? {};
  return [
    ...metadata,
    ...validateSelection(spec, { kind: 'daemonset', isRequired: false }),
    ...validateTemplate(spec.template, 'spec.template'),
    ...validateRunsForever(spec.template, 'DaemonSet'),
    ...nonNegative('spec.minReadySeconds', spec.minReadySeconds),
    ...validateStrategy(spec.updateStrategy),
    ...nonNegative('spec.revisionHistoryLimit', spec.revisionHistoryLimit),
    ...(old === undefined ? [] : immutable('spec.selector', spec.selector, old.spec?.selector)),
  ];
}
