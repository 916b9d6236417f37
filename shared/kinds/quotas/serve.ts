/** ResourceQuotas and LimitRanges. They are stored; no admission enforces them yet. */

import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { withoutEmpty, withoutNulls } from '../../kubernetes/normal-form.ts';
import { canonicalQuantity } from '../../kubernetes/quantity.ts';
import { ageOf, createdAtColumn, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { preparesStatus, preparesWhole, STATUS_PART, servedKind } from '../served-kind.ts';
import type { KubeLimitRange, KubeResourceQuota, LimitRangeItem, ResourceList } from '../types.ts';
import { LIMIT_RANGES, RESOURCE_QUOTAS } from './resource.ts';
import { validateLimitRange, validateResourceQuota } from './validate.ts';

const canonical = (amounts: ResourceList = {}): ResourceList =>
  Object.fromEntries(Object.entries(amounts).map(([name, value]) => [name, canonicalQuantity(value)]));

/** `pods: 1/2` for each resource. */
function useCell({ status = {} }: KubeResourceQuota, isLimit: boolean): string {
  const { hard = {}, used = {} } = status;
  return Object.keys(hard)
    .filter((name) => name.startsWith('limits') === isLimit)
    .sort()
    .map((name) => `${name}: ${used[name] ?? '0'}/${hard[name]}`)
    .join(', ');
}

export const resourcequotas: ResourceDescriptor = servedKind(RESOURCE_QUOTAS, {
  shortNames: ['quota'],
  subresources: [STATUS_PART],
  columns: [
    nameColumn,
    ageColumn,
    textColumn('Request', 'Use and limit of everything but limits.'),
    textColumn('Limit', 'Use and limit of limits.'),
  ],
  row: (object: KubeResourceQuota, nowMs) => [
    nameOf(object),
    ageOf(object, nowMs),
    useCell(object, false),
    useCell(object, true),
  ],
  prepare: preparesStatus(
    RESOURCE_QUOTAS,
    (spec: KubeResourceQuota['spec'] = {}) =>
      withoutEmpty({ ...withoutNulls(spec), hard: canonical(spec.hard) }, 'hard', 'scopes'),
    { hasGeneration: false },
  ),
  validate: validateResourceQuota,
});

/**
 * A maximum is the default limit; a default limit or a minimum is the default request (pkg/apis/core/v1/defaults.go).
 */
function storedLimit(given: LimitRangeItem): LimitRangeItem {
  const item: LimitRangeItem = { ...given, max: canonical(given.max), min: canonical(given.min) };
  const keep = (of: LimitRangeItem) =>
    withoutEmpty(of, 'max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio');
  if (item.type !== 'Container') return keep(item);
  const limit = { ...item.max, ...canonical(given.default) };
  return keep({
    ...item,
    default: limit,
    defaultRequest: { ...item.min, ...limit, ...canonical(given.defaultRequest) },
  });
}

export const limitranges: ResourceDescriptor = servedKind(LIMIT_RANGES, {
  shortNames: ['limits'],
  createOnUpdate: true,
  columns: [nameColumn, createdAtColumn],
  row: (object: KubeLimitRange) => [nameOf(object), object.metadata.creationTimestamp ?? ''],
  prepare: preparesWhole(LIMIT_RANGES, (object: KubeLimitRange) => ({
    ...object,
    spec: { ...object.spec, limits: (object.spec?.limits ?? []).map(storedLimit) },
  })),
  validate: validateLimitRange,
});
