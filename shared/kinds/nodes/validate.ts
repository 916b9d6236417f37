/** Node (pkg/apis/core/validation/validation.go: ValidateNode, ValidateNodeUpdate). */

import { duplicate, forbiddenField, invalidValue, notSupported, required, sameJson } from '../../kubernetes/causes.ts';
import { amountCauses } from '../../kubernetes/quantity.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { addressFamily } from '../../kubernetes/validate-addresses.ts';
import {
  labelValueErrors,
  nodeName,
  qualifiedNameErrors,
  validateObjectMetadata,
} from '../../kubernetes/validate-metadata.ts';
import type { KubeNode, ResourceList, Taint } from '../types.ts';

export const TAINT_EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

export function validateTaints(taints: readonly Taint[] | undefined, field: string): Cause[] {
  const causes: Cause[] = [];
  const seen = new Set<string>();
  for (const [index, taint] of (taints ?? []).entries()) {
    const path = `${field}[${index}]`;
    const key = taint.key ?? '';
    for (const error of qualifiedNameErrors(key)) causes.push(invalidValue(`${path}.key`, key, error));
    const value = taint.value ?? '';
    for (const error of labelValueErrors(value)) causes.push(invalidValue(`${path}.value`, value, error));
    const effect: string = taint.effect ?? '';
    if (effect === '') causes.push(required(`${path}.effect`));
    else if (!TAINT_EFFECTS.includes(effect)) causes.push(notSupported(`${path}.effect`, effect, TAINT_EFFECTS));
    const identity = `${effect}\n${key}`;
    if (seen.has(identity)) causes.push(duplicate(path, taint, 'taints must be unique by key and effect pair'));
    seen.add(identity);
  }
  return causes;
}

export const CIDR_TEXT = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';

function validatePodCidrs(cidrs: readonly string[]): Cause[] {
  const causes: Cause[] = [];
  const families = cidrs.map((cidr) => addressFamily(cidr, 'cidr'));
  for (const [index, cidr] of cidrs.entries()) {
    if (families[index] === undefined) causes.push(invalidValue(`spec.podCIDRs[${index}]`, cidr, CIDR_TEXT));
  }
  if (causes.length > 0 || cidrs.length < 2) return causes;
  if (cidrs.length > 2 || new Set(families).size < 2) {
    causes.push(invalidValue('spec.podCIDRs', cidrs, 'may specify no more than one CIDR for each IP family'));
  }
  const seen = new Set<string>();
  for (const [index, cidr] of cidrs.entries()) {
    if (seen.has(cidr)) causes.push(duplicate(`spec.podCIDRs[${index}]`, cidr));
    seen.add(cidr);
  }
  return causes;
}

const validateQuantities = (amounts: ResourceList = {}, field: string): Cause[] =>
  Object.entries(amounts).flatMap(([name, text]) => amountCauses(name, text, `${field}.${name}`));

const FEATURE = /^[A-Z][a-zA-Z0-9]*(\/[a-zA-Z][a-zA-Z0-9]*)*$/;
const FEATURE_LENGTH_MAX = 253;

function featureFault(name: string): string | undefined {
  const head = `invalid feature name ${JSON.stringify(name)}: must`;
  if (name.length > FEATURE_LENGTH_MAX) return `${head} be no more than ${FEATURE_LENGTH_MAX} characters`;
  if (FEATURE.test(name)) return undefined;
  return `${head} start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes`;
}

/** Source: the same (validateNodeDeclaredFeatures). */
function validateFeatures(features: readonly string[] = []): Cause[] {
  return features.flatMap((name, index) => {
    const field = `status.declaredFeatures[${index}]`;
    const before = features[index - 1] ?? '';
    const fault = featureFault(name);
    return [
      ...(name === before && index > 0 ? [duplicate(field, name)] : []),
      ...(name < before ? [invalidValue(field, name, 'list must be sorted alphabetically')] : []),
      ...(fault === undefined ? [] : [invalidValue(field, name, fault)]),
    ];
  });
}

function validateStatus(node: KubeNode): Cause[] {
  const causes = [
    ...validateQuantities(node.status?.capacity, 'status.capacity'),
    ...validateQuantities(node.status?.allocatable, 'status.allocatable'),
    ...validateFeatures(node.status?.declaredFeatures),
  ];
  const seen = new Set<string>();
  for (const [index, address] of (node.status?.addresses ?? []).entries()) {
    const identity = `${address.type}\n${address.address}`;
    if (seen.has(identity)) causes.push(duplicate(`status.addresses[${index}]`, address));
    seen.add(identity);
  }
  return causes;
}

/**
 * What an update may not change. podCIDRs and providerID may be set once: a change of a stored value is refused for the
 * field and for the whole, as upstream.
 */
function fixedSpec({ spec = {} }: KubeNode, isSet: { readonly cidrs: boolean; readonly providerId: boolean }) {
  const { podCIDR, podCIDRs, providerID, unschedulable: _unschedulable, taints: _taints, ...fixed } = spec;
  return { ...fixed, ...(isSet.cidrs ? { podCIDR, podCIDRs } : {}), ...(isSet.providerId ? { providerID } : {}) };
}

function validateSpecUpdate(node: KubeNode, old: KubeNode): Cause[] {
  const causes: Cause[] = [];
  const oldCidrs = old.spec?.podCIDRs ?? [];
  const oldProviderId = old.spec?.providerID ?? '';
  const isSet = { cidrs: oldCidrs.length > 0, providerId: oldProviderId !== '' };
  if (!isSet.cidrs) causes.push(...validatePodCidrs(node.spec?.podCIDRs ?? []));
  else if (!sameJson(oldCidrs, node.spec?.podCIDRs)) {
    causes.push(forbiddenField('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid'));
  }
  if (isSet.providerId && oldProviderId !== (node.spec?.providerID ?? '')) {
    causes.push(forbiddenField('spec.providerID', 'node updates may not change providerID except from "" to valid'));
  }
  if (!sameJson(fixedSpec(node, isSet), fixedSpec(old, isSet))) {
    causes.push(forbiddenField('[]', 'node updates may only change labels, taints, or capacity'));
  }
  return causes;
}

export function validateNode(node: KubeNode, old: KubeNode | undefined): Cause[] {
  return [
    ...validateObjectMetadata(node, old, { namespaced: false, name: nodeName }),
    // Upstream reports the taints of the spec under this path, and clients rely on it.
    ...validateTaints(node.spec?.taints, 'metadata.taints'),
    ...(old === undefined ? validatePodCidrs(node.spec?.podCIDRs ?? []) : validateSpecUpdate(node, old)),
    ...validateStatus(node),
  ];
}
