import type { Descriptions } from './descriptions.ts';

export const quotas: Descriptions = {
  'core/v1.LimitRange': {
    '': 'LimitRange sets resource usage limits for each kind of resource in a namespace.',
    spec: 'The limits.',
  },
  'core/v1.LimitRangeItem': {
    '': 'Limits of one kind of object.',
    type: 'Container, Pod or PersistentVolumeClaim.',
    max: 'Maximum by resource name.',
    min: 'Minimum by resource name.',
    default: 'Limit of containers that have none.',
    defaultRequest: 'Request of containers that have none.',
    maxLimitRequestRatio: 'Largest ratio of limit to request.',
  },
  'core/v1.LimitRangeSpec': {
    '': 'Limits of the objects of a namespace.',
    limits: 'Limits, one per kind of object.',
  },
  'core/v1.ResourceQuota': {
    '': 'ResourceQuota sets aggregate quota restrictions enforced per namespace.',
    spec: 'Limits of the namespace.',
    status: 'Limits and use.',
  },
  'core/v1.ResourceQuotaSpec': {
    '': 'Limits of a namespace.',
    hard: 'Limits by resource name, such as pods or requests.cpu.',
    scopes: 'Scopes that an object must be in to count.',
    scopeSelector: 'Further scopes that an object must be in to count.',
  },
  'core/v1.ResourceQuotaStatus': {
    '': 'Use of a quota.',
    hard: 'Limits that are enforced.',
    used: 'Current use.',
  },
  'core/v1.ScopeSelector': {
    '': 'Selects the objects that a quota counts.',
    matchExpressions: 'Requirements that must all be met.',
  },
  'core/v1.ScopedResourceSelectorRequirement': {
    '': 'One requirement for the objects that a quota counts.',
    scopeName: 'Scope that the requirement is about.',
    operator: 'In, NotIn, Exists or DoesNotExist.',
    values: 'Values for In and NotIn.',
  },
};
