import { metadata } from '../../kubernetes/schema/meta.ts';
import {
  atomicStruct,
  embedded,
  kindStruct,
  list,
  optionalStruct,
  required,
  resourceList,
  type StructSchema,
  struct,
  text,
  textList,
} from '../../kubernetes/schema/schema.ts';

const CORE = 'io.k8s.api.core.v1';

const scopedResourceSelectorRequirement = struct(
  `${CORE}.ScopedResourceSelectorRequirement`,
  'One requirement for the objects that a quota counts.',
  {
    scopeName: required(text('Scope that the requirement is about.')),
    operator: required(text('In, NotIn, Exists or DoesNotExist.')),
    values: textList('Values for In and NotIn.'),
  },
);

const scopeSelector = atomicStruct(`${CORE}.ScopeSelector`, 'Selects the objects that a quota counts.', {
  matchExpressions: list(scopedResourceSelectorRequirement, 'Requirements that must all be met.'),
});

const resourceQuotaSpec = struct(`${CORE}.ResourceQuotaSpec`, 'Limits of a namespace.', {
  hard: resourceList('Limits by resource name, such as pods or requests.cpu.'),
  scopes: textList('Scopes that an object must be in to count.'),
  scopeSelector: optionalStruct(scopeSelector, 'Further scopes that an object must be in to count.'),
});

const resourceQuotaStatus = struct(`${CORE}.ResourceQuotaStatus`, 'Use of a quota.', {
  hard: resourceList('Limits that are enforced.'),
  used: resourceList('Current use.'),
});

export const resourceQuota: StructSchema = kindStruct(
  `${CORE}.ResourceQuota`,
  { group: '', version: 'v1', kind: 'ResourceQuota' },
  'ResourceQuota sets aggregate quota restrictions enforced per namespace.',
  {
    metadata,
    spec: embedded(resourceQuotaSpec, 'Limits of the namespace.'),
    status: embedded(resourceQuotaStatus, 'Limits and use.'),
  },
);

const limitRangeItem = struct(`${CORE}.LimitRangeItem`, 'Limits of one kind of object.', {
  type: required(text('Container, Pod or PersistentVolumeClaim.')),
  max: resourceList('Maximum by resource name.'),
  min: resourceList('Minimum by resource name.'),
  default: resourceList('Limit of containers that have none.'),
  defaultRequest: resourceList('Request of containers that have none.'),
  maxLimitRequestRatio: resourceList('Largest ratio of limit to request.'),
});

const limitRangeSpec = struct(`${CORE}.LimitRangeSpec`, 'Limits of the objects of a namespace.', {
  limits: required(list(limitRangeItem, 'Limits, one per kind of object.')),
});

export const limitRange: StructSchema = kindStruct(
  `${CORE}.LimitRange`,
  { group: '', version: 'v1', kind: 'LimitRange' },
  'LimitRange sets resource usage limits for each kind of resource in a namespace.',
  {
    metadata,
    spec: embedded(limitRangeSpec, 'The limits.'),
  },
);
