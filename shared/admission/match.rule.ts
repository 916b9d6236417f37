/**
 * Which requests a policy or a binding is for. Sources: k8s.io/apiserver pkg/admission/plugin/policy/matching and
 * webhook/predicates.
 */

import type { KubeObject, MatchResources, NamedRuleWithOperations } from '../kinds/types.ts';
import { selectorFromSpec } from '../kubernetes/selectors.ts';

export type AdmittedOperation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';

/** A write, as far as rules look at it. */
export interface MatchedRequest {
  readonly operation: AdmittedOperation;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  /** '': none. */
  readonly subresource: string;
  /** Groups and versions that serve the same objects, such as events.k8s.io/v1 for events. */
  readonly equivalents: readonly { readonly group: string; readonly version: string }[];
  readonly name: string;
  /** '' for a cluster-scoped object. A Namespace is one. */
  readonly namespace: string;
  readonly object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
}

type Labels = Readonly<Record<string, string>>;

const includes = (all: readonly string[] | undefined, wanted: string): boolean =>
  (all ?? []).some((each) => each === '*' || each === wanted);

function matchesResource(resources: readonly string[] | undefined, { resource, subresource }: MatchedRequest): boolean {
  return (resources ?? []).some((each) => {
    const [wanted = '', part = ''] = each.split('/');
    return (wanted === '*' || wanted === resource) && (part === '*' || part === subresource);
  });
}

function matchesScope(scope: string | undefined, { namespace, resource }: MatchedRequest): boolean {
  if (scope === undefined || scope === '*') return true;
  const isNamespaced = namespace !== '' && resource !== 'namespaces';
  return isNamespaced === (scope === 'Namespaced');
}

function matchesRule(rule: NamedRuleWithOperations, request: MatchedRequest, isExact: boolean): boolean {
  const { resourceNames = [], operations, apiGroups, apiVersions, resources, scope } = rule;
  if (!includes(operations, request.operation) || !matchesResource(resources, request)) return false;
  if (!matchesScope(scope, request)) return false;
  if (resourceNames.length > 0 && !resourceNames.includes(request.name)) return false;
  const served = isExact ? [request] : [request, ...request.equivalents];
  return served.some(({ group, version }) => includes(apiGroups, group) && includes(apiVersions, version));
}

/** @param forBinding a binding without rules is for every request of its policy */
export function matchesRules(match: MatchResources, request: MatchedRequest, forBinding: boolean): boolean {
  const { resourceRules = [], excludeResourceRules = [], matchPolicy } = match;
  const isExact = matchPolicy === 'Exact';
  if (excludeResourceRules.some((rule) => matchesRule(rule, request, isExact))) return false;
  if (forBinding && resourceRules.length === 0) return true;
  return resourceRules.some((rule) => matchesRule(rule, request, isExact));
}

const isEmptySelector = (selector: MatchResources['objectSelector']): boolean =>
  selector === undefined ||
  (Object.keys(selector.matchLabels ?? {}).length === 0 && (selector.matchExpressions ?? []).length === 0);

/** Whether the labels of the namespace decide. */
export const readsNamespace = ({ namespaceSelector }: MatchResources): boolean => !isEmptySelector(namespaceSelector);

/** @param namespaceLabels of the object's namespace, or of the Namespace that is written; undefined: it has none */
export function matchesSelectors(
  { namespaceSelector, objectSelector }: MatchResources,
  { object, oldObject }: MatchedRequest,
  namespaceLabels: Labels | undefined,
): boolean {
  if (!isEmptySelector(namespaceSelector) && namespaceLabels !== undefined) {
    if (!selectorFromSpec(namespaceSelector).matches(namespaceLabels)) return false;
  }
  if (isEmptySelector(objectSelector)) return true;
  const selector = selectorFromSpec(objectSelector);
  const labelsOf = (each: KubeObject | undefined): Labels => each?.metadata?.labels ?? {};
  return (
    (object !== undefined && selector.matches(labelsOf(object))) ||
    (oldObject !== undefined && selector.matches(labelsOf(oldObject)))
  );
}
