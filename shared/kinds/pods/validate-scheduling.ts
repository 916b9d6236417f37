/**
 * Fields for the scheduler (pkg/apis/core/validation/validation.go: validateAffinity,
 * validateTopologySpreadConstraints).
 */

import { duplicate, forbiddenField, invalidValue, notSupported, required } from '../../kubernetes/causes.ts';
import { validateSelector } from '../../kubernetes/selectors.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { labelErrors, qualifiedNameErrors, subdomainErrors } from '../../kubernetes/validate-metadata.ts';
import type {
  Affinity,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodAffinity,
  PodAffinityTerm,
  TopologySpreadConstraint,
} from '../types.ts';

const WEIGHT_TEXT = 'must be in the range 1-100';
const POSITIVE_TEXT = 'must be greater than zero';

const validateKey = (field: string, key: string): Cause[] =>
  qualifiedNameErrors(key).map((error) => invalidValue(field, key, error));

function validateExpression({ key, operator, values = [] }: NodeSelectorRequirement, field: string): Cause[] {
  const causes: Cause[] = [];
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0) {
        causes.push(required(`${field}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
      }
      break;
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0) {
        const why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
        causes.push(forbiddenField(`${field}.values`, why));
      }
      break;
    case 'Gt':
    case 'Lt':
      if (values.length !== 1) {
        causes.push(required(`${field}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'"));
      }
      break;
    default:
      causes.push(invalidValue(`${field}.operator`, operator ?? '', 'not a valid selector operator'));
  }
  return [...causes, ...validateKey(`${field}.key`, key ?? '')];
}

function validateFieldExpression({ key, operator, values = [] }: NodeSelectorRequirement, field: string): Cause[] {
  const causes: Cause[] = [];
  if (operator !== 'In' && operator !== 'NotIn') {
    causes.push(invalidValue(`${field}.operator`, operator ?? '', 'not a valid selector operator'));
  } else if (values.length !== 1) {
    const why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
    causes.push(required(`${field}.values`, why));
  }
  if (key !== 'metadata.name') {
    return [...causes, invalidValue(`${field}.key`, key ?? '', 'not a valid field selector key')];
  }
  for (const [index, value] of values.entries()) {
    for (const error of subdomainErrors(value)) causes.push(invalidValue(`${field}.values[${index}]`, value, error));
  }
  return causes;
}

export const validateNodeSelectorTerm = (term: NodeSelectorTerm, field: string): Cause[] => [
  ...(term.matchExpressions ?? []).flatMap((each, index) =>
    validateExpression(each, `${field}.matchExpressions[${index}]`),
  ),
  ...(term.matchFields ?? []).flatMap((each, index) => validateFieldExpression(each, `${field}.matchFields[${index}]`)),
];

/** A selector that must match: at least one term. */
export function validateNodeSelector(terms: readonly NodeSelectorTerm[], field: string): Cause[] {
  const path = `${field}.nodeSelectorTerms`;
  if (terms.length === 0) return [required(path, 'must have at least one node selector term')];
  return terms.flatMap((term, index) => validateNodeSelectorTerm(term, `${path}[${index}]`));
}

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

const validateWeight = (field: string, weight = 0): Cause[] =>
  weight >= 1 && weight <= 100 ? [] : [invalidValue(field, weight, WEIGHT_TEXT)];

function validateNodeAffinity(affinity: NonNullable<Affinity['nodeAffinity']>, field: string): Cause[] {
  const selector = affinity[REQUIRED];
  return [
    ...(selector === undefined ? [] : validateNodeSelector(selector.nodeSelectorTerms ?? [], `${field}.${REQUIRED}`)),
    ...(affinity[PREFERRED] ?? []).flatMap(({ weight, preference = {} }, index) => [
      ...validateWeight(`${field}.${PREFERRED}[${index}].weight`, weight),
      ...validateNodeSelectorTerm(preference, `${field}.${PREFERRED}[${index}].preference`),
    ]),
  ];
}

function validateAffinityTerm(term: PodAffinityTerm, field: string): Cause[] {
  const { topologyKey = '', namespaces = [], matchLabelKeys = [], mismatchLabelKeys = [] } = term;
  const causes = [
    ...validateSelector(term.labelSelector, `${field}.labelSelector`),
    ...validateSelector(term.namespaceSelector, `${field}.namespaceSelector`),
    ...namespaces.flatMap((name) => labelErrors(name).map((error) => invalidValue(`${field}.namespace`, name, error))),
  ];
  for (const [name, keys] of Object.entries({ matchLabelKeys, mismatchLabelKeys })) {
    if (keys.length > 0 && term.labelSelector === undefined) {
      causes.push(forbiddenField(`${field}.${name}`, 'must not be specified when labelSelector is not set'));
    }
    for (const [index, key] of keys.entries()) causes.push(...validateKey(`${field}.${name}[${index}]`, key));
  }
  const firstIndex = new Map(matchLabelKeys.map((key, index) => [key, index] as const).reverse());
  const both = mismatchLabelKeys.filter((key) => firstIndex.has(key));
  for (const key of both) {
    causes.push(
      invalidValue(
        `${field}.matchLabelKeys[${firstIndex.get(key)}]`,
        key,
        'exists in both matchLabelKeys and mismatchLabelKeys',
      ),
    );
  }
  if (topologyKey === '') causes.push(required(`${field}.topologyKey`, 'can not be empty'));
  return [...causes, ...validateKey(`${field}.topologyKey`, topologyKey)];
}

const validatePodAffinity = (affinity: PodAffinity, field: string): Cause[] => [
  ...(affinity[REQUIRED] ?? []).flatMap((term, index) => validateAffinityTerm(term, `${field}.${REQUIRED}[${index}]`)),
  ...(affinity[PREFERRED] ?? []).flatMap(({ weight, podAffinityTerm }, index) => [
    ...validateWeight(`${field}.${PREFERRED}[${index}].weight`, weight),
    ...validateAffinityTerm(podAffinityTerm ?? { topologyKey: '' }, `${field}.${PREFERRED}[${index}].podAffinityTerm`),
  ]),
];

export const validateAffinity = ({ nodeAffinity, podAffinity, podAntiAffinity }: Affinity, field: string): Cause[] => [
  ...(nodeAffinity === undefined ? [] : validateNodeAffinity(nodeAffinity, `${field}.nodeAffinity`)),
  ...(podAffinity === undefined ? [] : validatePodAffinity(podAffinity, `${field}.podAffinity`)),
  ...(podAntiAffinity === undefined ? [] : validatePodAffinity(podAntiAffinity, `${field}.podAntiAffinity`)),
];

const UNSATISFIABLE = ['DoNotSchedule', 'ScheduleAnyway'];
const INCLUSION = ['Honor', 'Ignore'];

function validateSpread(spread: TopologySpreadConstraint, field: string): Cause[] {
  const { maxSkew = 0, topologyKey = '', whenUnsatisfiable: when = '', minDomains, matchLabelKeys = [] } = spread;
  const causes: Cause[] = [];
  if (maxSkew <= 0) causes.push(invalidValue(`${field}.maxSkew`, maxSkew, POSITIVE_TEXT));
  if (topologyKey === '') causes.push(required(`${field}.topologyKey`, 'can not be empty'));
  else causes.push(...validateKey(`${field}.topologyKey`, topologyKey));
  if (!UNSATISFIABLE.includes(when)) causes.push(notSupported(`${field}.whenUnsatisfiable`, when, UNSATISFIABLE));
  if (minDomains !== undefined) {
    if (minDomains <= 0) causes.push(invalidValue(`${field}.minDomains`, minDomains, POSITIVE_TEXT));
    if (when !== 'DoNotSchedule') {
      const why = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${when}`;
      causes.push(invalidValue(`${field}.minDomains`, minDomains, why));
    }
  }
  for (const name of ['nodeAffinityPolicy', 'nodeTaintsPolicy'] as const) {
    const policy = spread[name];
    if (policy !== undefined && !INCLUSION.includes(policy)) {
      causes.push(notSupported(`${field}.${name}`, policy, INCLUSION));
    }
  }
  if (matchLabelKeys.length > 0 && spread.labelSelector === undefined) {
    causes.push(forbiddenField(`${field}.matchLabelKeys`, 'must not be specified when labelSelector is not set'));
  }
  for (const [index, key] of matchLabelKeys.entries()) {
    causes.push(...validateKey(`${field}.matchLabelKeys[${index}]`, key));
  }
  return [...causes, ...validateSelector(spread.labelSelector, `${field}.labelSelector`)];
}

export function validateSpreads(spreads: readonly TopologySpreadConstraint[], field: string): Cause[] {
  const causes: Cause[] = [];
  const pairOf = (spread: TopologySpreadConstraint) => `{${spread.topologyKey}, ${spread.whenUnsatisfiable}}`;
  const last = new Map(spreads.map((spread, index) => [pairOf(spread), index]));
  for (const [index, spread] of spreads.entries()) {
    const path = `${field}[${index}]`;
    causes.push(...validateSpread(spread, path));
    const pair = pairOf(spread);
    if ((last.get(pair) ?? index) > index) causes.push(duplicate(`${path}.{topologyKey, whenUnsatisfiable}`, pair));
  }
  return causes;
}
