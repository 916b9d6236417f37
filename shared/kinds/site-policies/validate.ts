/** SitePolicy. The limits are those of what a scheduler reads for each group of bindings. */
import { duplicate, errorsAt, required, tooMany } from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import {
  labelErrors,
  subdomainErrors,
  subdomainName,
  validateObjectMetadata,
} from '../../kubernetes/validate-metadata.ts';
import type { KubeSitePolicy } from '../types.ts';

const NAMES_MAX = 1_000;

export function validateSitePolicy(policy: KubeSitePolicy, old: KubeSitePolicy | undefined): Cause[] {
  const { hub = '', nodes = [], namespaces = [] } = policy.spec ?? {};
  return [
    ...validateObjectMetadata(policy, old, { namespaced: false, name: subdomainName }),
    ...(hub === '' ? [required('spec.hub')] : []),
    ...validateList('spec.nodes', nodes, subdomainErrors),
    ...validateList('spec.namespaces', namespaces, labelErrors),
  ];
}

function validateList(field: string, names: readonly string[], errorsOf: (name: string) => string[]): Cause[] {
  if (names.length === 0) return [required(field)];
  if (names.length > NAMES_MAX) return [tooMany(field, names.length, NAMES_MAX)];
  return names.flatMap((name, index) => {
    const at = `${field}[${index}]`;
    return names.indexOf(name) < index ? [duplicate(at, name)] : errorsAt(at, name, errorsOf);
  });
}
