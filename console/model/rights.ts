/** What the user of the credential may do, from the rules of a SelfSubjectRulesReview. */
export interface ResourceRule {
  readonly verbs?: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
}

const includes = (list: readonly string[] | undefined, value: string): boolean =>
  list !== undefined && (list.includes(value) || list.includes('*'));

/** Why the user may not change Nodes; undefined when it may. The API decides again at each write. */
export function whyNodesAreReadOnly(rules: readonly ResourceRule[]): string | undefined {
  const may = rules.some(
    ({ verbs, apiGroups, resources, resourceNames = [] }) =>
      includes(verbs, 'patch') && includes(apiGroups, '') && includes(resources, 'nodes') && resourceNames.length === 0,
  );
  return may ? undefined : 'Your user may not patch nodes.';
}
