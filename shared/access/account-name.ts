/** User and group names of service accounts. Source: k8s.io/apiserver pkg/authentication/serviceaccount/util.go. */
import { subdomainName } from '../kubernetes/validate-metadata.ts';
import type { UserInfo } from './user-info.ts';

const USER_PREFIX = 'system:serviceaccount:';
const ALL_ACCOUNTS_GROUP = 'system:serviceaccounts';
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

export const serviceAccountUser = (namespace: string, name: string): string => `${USER_PREFIX}${namespace}:${name}`;

/** The groups of a service account, without system:authenticated. */
export const serviceAccountGroups = (namespace: string): string[] => [
  ALL_ACCOUNTS_GROUP,
  `${ALL_ACCOUNTS_GROUP}:${namespace}`,
];

/** Who a request with the token of a service account is. */
export const serviceAccountInfo = (namespace: string, name: string): UserInfo => ({
  username: serviceAccountUser(namespace, name),
  groups: [...serviceAccountGroups(namespace), 'system:authenticated'],
});

/** The account that a user name belongs to. undefined: it is no valid name of a service account. */
export function serviceAccountIn(username: string): { readonly namespace: string; readonly name: string } | undefined {
  if (!username.startsWith(USER_PREFIX)) return undefined;
  const [namespace = '', name = '', ...more] = username.slice(USER_PREFIX.length).split(':');
  const isValid = more.length === 0 && NAMESPACE.test(namespace) && subdomainName(name, false).length === 0;
  return isValid ? { namespace, name } : undefined;
}
