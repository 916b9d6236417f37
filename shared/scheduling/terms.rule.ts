/** Terms of affinity and spread, compiled once per pod: whether they match a pod. */

import type { PodAffinityTerm } from '../kinds/types.ts';
import { type LabelSelectorSpec, selectorFromSpec } from '../kubernetes/selectors.ts';

export type Labels = Readonly<Record<string, string>>;

/** Equal texts select the same pods. */
export interface CompiledSelector {
  readonly text: string;
  matches(labels: Labels): boolean;
}

/** Labels of the namespaces, by name. */
export type NamespaceLabels = ReadonlyMap<string, Labels>;

export interface PodTerm {
  readonly topologyKey: string;
  readonly selector: CompiledSelector;
  readonly namespaces: ReadonlySet<string>;
  /** Absent: the names in `namespaces` alone. */
  readonly namespaceSelector: CompiledSelector | undefined;
  /** The text of the selector and the namespaces, without the topology key. */
  readonly text: string;
}

export interface WeightedPodTerm {
  readonly term: PodTerm;
  readonly weight: number;
}

/** What a term compares of a pod. */
export interface TermSubject {
  readonly namespace: string;
  readonly labels: Labels;
}

const NONE: CompiledSelector = { text: 'none', matches: () => false };

/**
 * With the pod's own values of `matchKeys` (In) and `mismatchKeys` (NotIn); keys that the pod lacks are skipped. An
 * absent selector selects nothing, whatever the keys.
 */
export function compiledSelector(
  spec: LabelSelectorSpec | undefined,
  own: { readonly labels: Labels; readonly matchKeys?: readonly string[]; readonly mismatchKeys?: readonly string[] },
): CompiledSelector {
  if (spec === undefined || spec === null) return NONE;
  const added = [
    ...(own.matchKeys ?? []).map((key) => ({ key, operator: 'In' })),
    ...(own.mismatchKeys ?? []).map((key) => ({ key, operator: 'NotIn' })),
  ].flatMap(({ key, operator }) => {
    const value = own.labels[key];
    return value === undefined ? [] : [{ key, operator, values: [value] }];
  });
  const merged =
    added.length === 0 ? spec : { ...spec, matchExpressions: [...(spec.matchExpressions ?? []), ...added] };
  const { matches } = selectorFromSpec(merged);
  return { text: JSON.stringify([merged.matchLabels ?? {}, merged.matchExpressions ?? []]), matches };
}

/** `namespace`, `labels`: of the pod that has the term. */
export function compiledTerm(term: PodAffinityTerm, { namespace, labels }: TermSubject): PodTerm {
  const selector = compiledSelector(term.labelSelector, {
    labels,
    matchKeys: term.matchLabelKeys ?? [],
    mismatchKeys: term.mismatchLabelKeys ?? [],
  });
  const names = term.namespaces ?? [];
  const hasSelector = term.namespaceSelector !== undefined && term.namespaceSelector !== null;
  const namespaces = new Set(names.length === 0 && !hasSelector ? [namespace] : names);
  const namespaceSelector = hasSelector ? compiledSelector(term.namespaceSelector, { labels: {} }) : undefined;
  const text = `${[...namespaces].sort().join(',')}|${namespaceSelector?.text ?? ''}|${selector.text}`;
  return { topologyKey: term.topologyKey, selector, namespaces, namespaceSelector, text };
}

export const includesNamespace = (term: PodTerm, namespace: string, labelsOf: NamespaceLabels): boolean =>
  term.namespaces.has(namespace) || (term.namespaceSelector?.matches(labelsOf.get(namespace) ?? {}) ?? false);

/** The namespace is in the set of the term, and the selector matches the labels. */
export const termMatches = (term: PodTerm, pod: TermSubject, labelsOf: NamespaceLabels): boolean =>
  includesNamespace(term, pod.namespace, labelsOf) && term.selector.matches(pod.labels);
