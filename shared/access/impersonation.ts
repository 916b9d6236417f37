/**
 * `kubectl --as`: a request with the permissions of another user. Kubernetes: "Authenticating", user impersonation;
 * upstream k8s.io/apiserver pkg/endpoints/filters/impersonation.go.
 *
 * The caller needs the verb `impersonate` for the user or service account, for each group, for the uid and for each
 * extra value. Without groups, a service account has its own ones.
 *
 * A header that was sent several times arrives as one, with commas. So a comma separates groups, and each of them is
 * authorized.
 */

import { defined } from '../defined.ts';
import * as status from '../kubernetes/status.ts';
import { serviceAccountGroups, serviceAccountIn } from './account-name.ts';
import type { Authorizer } from './authorizer.ts';
import type { UserInfo } from './user-info.ts';

const PREFIX = 'impersonate-';
const EXTRA_PREFIX = 'impersonate-extra-';
const AUTHENTICATION = 'authentication.k8s.io';
const AUTHENTICATED = 'system:authenticated';
const UNAUTHENTICATED = 'system:unauthenticated';
const ANONYMOUS = 'system:anonymous';
/** Groups and extra values of one request. */
const PARTS_MAX = 100;

type Headers = Readonly<Record<string, string>>;

/** One thing that a request wants to act as. */
interface Part {
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name: string;
}

/** The headers without those of impersonation. */
export const withoutImpersonation = (headers: Headers): Headers =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith(PREFIX)));

/**
 * The user that a request acts as: the caller, or the one in its headers.
 *
 * @throws StatusError 403 when the caller may not impersonate, 400 for incomplete headers
 */
export async function effectiveUser(
  authorizer: Authorizer,
  headers: Headers,
  caller: UserInfo,
  nowMs: number,
): Promise<UserInfo> {
  if (!Object.keys(headers).some((name) => name.startsWith(PREFIX))) return caller;
  const username = headers['impersonate-user'] ?? '';
  const groups = valuesOf(headers['impersonate-group']);
  const uid = headers['impersonate-uid'] ?? '';
  const extra = extraOf(headers);
  const unknown = Object.keys(headers).find((name) => name.startsWith(PREFIX) && !isKnown(name));
  if (unknown !== undefined) throw status.badRequest(`header ${unknown} is not supported`);
  if (username === '') throw status.badRequest('requested groups, a uid or extra values without impersonating a user');
  const account = serviceAccountIn(username);
  const parts: readonly Part[] = [
    account === undefined
      ? { group: '', resource: 'users', name: username }
      : { group: '', resource: 'serviceaccounts', ...account },
    ...groups.map((name) => ({ group: '', resource: 'groups', name })),
    ...Object.entries(extra).flatMap(([key, values]) =>
      values.map((name) => ({ group: AUTHENTICATION, resource: 'userextras', subresource: key, name })),
    ),
    ...(uid === '' ? [] : [{ group: AUTHENTICATION, resource: 'uids', name: uid }]),
  ];
  if (parts.length > PARTS_MAX)
    throw status.badRequest(`at most ${PARTS_MAX} groups and extra values can be impersonated`);
  for (const part of parts) await requireImpersonation(authorizer, caller, part, nowMs);
  const own = groups.length === 0 && account !== undefined ? serviceAccountGroups(account.namespace) : groups;
  return {
    username,
    groups: withAuthentication(username, own),
    ...defined({ uid: uid === '' ? undefined : uid, extra: Object.keys(extra).length === 0 ? undefined : extra }),
  };
}

const KNOWN = new Set(['impersonate-user', 'impersonate-group', 'impersonate-uid']);
const isKnown = (header: string): boolean => KNOWN.has(header) || header.startsWith(EXTRA_PREFIX);

async function requireImpersonation(
  authorizer: Authorizer,
  caller: UserInfo,
  { group, resource, subresource = '', namespace = '', name }: Part,
  nowMs: number,
): Promise<void> {
  const verb = 'impersonate';
  const question = { verb, group, resource, subresource, namespace, name };
  const access = await authorizer.authorize(caller, question, nowMs);
  if (access.allowed) return;
  const target = { group, resource };
  throw status.accessDenied({ user: caller.username, verb, target, subresource, namespace, name }, access.reason);
}

/** Distinct values of a header. */
const valuesOf = (header: string | undefined): string[] => [
  ...new Set(
    (header ?? '')
      .split(',')
      .map((value) => value.trim())
      .filter((value) => value !== ''),
  ),
];

function extraOf(headers: Headers): Readonly<Record<string, readonly string[]>> {
  const extra = Object.entries(headers)
    .filter(([name]) => name.startsWith(EXTRA_PREFIX) && name.length > EXTRA_PREFIX.length)
    .map(([name, value]) => [decoded(name.slice(EXTRA_PREFIX.length)).toLowerCase(), valuesOf(value)] as const);
  return Object.fromEntries(extra);
}

/** Keys are percent-encoded. As upstream, a malformed one stays as it is. */
function decoded(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

/** The groups with the one that says whether the user is authenticated, unless the request names it. */
function withAuthentication(username: string, groups: readonly string[]): readonly string[] {
  if (username === ANONYMOUS) return groups.includes(UNAUTHENTICATED) ? groups : [...groups, UNAUTHENTICATED];
  const isNamed = groups.includes(AUTHENTICATED) || groups.includes(UNAUTHENTICATED);
  return isNamed ? groups : [...groups, AUTHENTICATED];
}
