/**
 * The claims of a service account's token, a JWT that the API signs. They are checked before the signature, because
 * that check is cheap. Valid claims without a valid signature prove nothing. Kubernetes: "Managing Service Accounts",
 * bound tokens; upstream pkg/serviceaccount/claims.go.
 */

import { defined } from '../defined.ts';
import type { KubeObject, ObjectRef } from '../kinds/types.ts';
import { isJsonObject } from '../kubernetes/json.ts';
import { serviceAccountIn, serviceAccountInfo, serviceAccountUser } from './account-name.ts';
import type { UserInfo } from './user-info.ts';

/**
 * Issuer of all tokens, and the audience of the API: upstream's default. A key of another cluster is not known here.
 */
export const ACCOUNT_ISSUER = 'https://kubernetes.default.svc.cluster.local';
/** Maximum validity. Requests for more get less. Seconds. */
export const ACCOUNT_TOKEN_SECONDS_MAX = 86_400;
/** Longest token that is parsed. Characters. */
export const ACCOUNT_TOKEN_CHARACTERS_MAX = 6_000;
/** Difference between the clocks of two of our processes. Seconds. */
const CLOCK_TOLERANCE_SECONDS = 10;
/** A deleted object that still waits for its removal is accepted for this long after its deletion. Seconds. */
const DELETION_LEEWAY_SECONDS = 60;

interface NamedObject {
  readonly name: string;
  readonly uid: string;
}

/** What a token is for. */
export interface AccountTokenContent {
  readonly namespace: string;
  readonly account: NamedObject;
  /** Absent: the token is bound to its account only. */
  readonly pod?: NamedObject;
  readonly secret?: NamedObject;
  /** The node of the pod, or the node that the token is bound to. */
  readonly node?: NamedObject;
  readonly audiences: readonly string[];
  /** Epoch seconds. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** Id of the token. */
  readonly tokenId: string;
}

/** The members of the JWT. */
export function accountTokenClaims(content: AccountTokenContent) {
  const { namespace, account, audiences, issuedAt, expiresAt, tokenId, pod, secret, node } = content;
  return {
    aud: audiences,
    exp: expiresAt,
    iat: issuedAt,
    iss: ACCOUNT_ISSUER,
    jti: tokenId,
    'kubernetes.io': { namespace, ...defined({ node, pod, secret }), serviceaccount: account },
    nbf: issuedAt,
    sub: serviceAccountUser(namespace, account.name),
  };
}

export interface VerifiableToken {
  readonly keyId: string;
  readonly content: AccountTokenContent;
}

export type AccountTokenVerdict =
  | { readonly kind: 'claims'; readonly token: VerifiableToken }
  | { readonly kind: 'refused'; readonly reason: string; readonly isByClock?: boolean };

type Json = Readonly<Record<string, unknown>>;

/** base64url of 32 bytes. */
const THUMBPRINT = /^[A-Za-z0-9_-]{43}$/;
const refused = (reason: string): AccountTokenVerdict => ({ kind: 'refused', reason });
const byClock = (reason: string): AccountTokenVerdict => ({ kind: 'refused', reason, isByClock: true });
const isSecond = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

/**
 * Checks all claims except signature and audience. `header` and `claims`: the JSON objects of the token, not validated.
 */
export function accountTokenVerdict(header: Json, claims: Json, nowMs: number): AccountTokenVerdict {
  const { alg, kid, typ } = header;
  if (alg !== 'ES256') return refused('algorithm not allowed');
  // RFC 7515 §4.1.11: a token with an unsupported critical extension must be refused. None is supported here.
  if ('crit' in header || 'b64' in header || (typ !== undefined && typ !== 'JWT')) {
    return refused('header has an unsupported member');
  }
  if (typeof kid !== 'string' || !THUMBPRINT.test(kid)) return refused('key id is no thumbprint');
  const content = contentIn(claims);
  if (content === undefined) return refused('malformed claims');
  const { issuedAt, expiresAt } = content;
  if (expiresAt <= issuedAt || expiresAt - issuedAt > ACCOUNT_TOKEN_SECONDS_MAX) return refused('validity not allowed');
  if (nowMs < (issuedAt - CLOCK_TOLERANCE_SECONDS) * 1_000) return byClock('not valid yet');
  if (nowMs >= expiresAt * 1_000) return byClock('expired');
  return { kind: 'claims', token: { keyId: kid, content } };
}

function contentIn(claims: Json): AccountTokenContent | undefined {
  const { iss, sub, aud, exp, iat, nbf, jti } = claims;
  const bound = claims['kubernetes.io'];
  if (iss !== ACCOUNT_ISSUER || typeof sub !== 'string' || !isJsonObject(bound)) return undefined;
  if (!Array.isArray(aud) || aud.length === 0 || !aud.every(isText)) return undefined;
  if (!isSecond(exp) || !isSecond(iat) || nbf !== iat || !isText(jti)) return undefined;
  const named = serviceAccountIn(sub);
  const { namespace, serviceaccount, pod, secret, node } = bound;
  const account = namedObject(serviceaccount);
  if (named === undefined || account === undefined) return undefined;
  if (named.namespace !== namespace || named.name !== account.name) return undefined;
  const objects = { pod: namedObject(pod), secret: namedObject(secret), node: namedObject(node) };
  if ([pod, secret, node].filter((each) => each !== undefined).length !== Object.keys(defined(objects)).length) {
    return undefined;
  }
  const times = { issuedAt: iat, expiresAt: exp, tokenId: jti };
  return { namespace: named.namespace, account, ...defined(objects), audiences: aud, ...times };
}

function namedObject(value: unknown): NamedObject | undefined {
  if (!isJsonObject(value)) return undefined;
  const { name, uid } = value;
  return isText(name) && isText(uid) ? { name, uid } : undefined;
}

export interface RequiredObject {
  readonly ref: ObjectRef;
  readonly uid: string;
}

/** The objects that must exist while a token is valid. The node of a pod is not among them. */
export function requiredObjects({
  namespace,
  account,
  pod,
  secret,
  node,
}: Pick<AccountTokenContent, 'namespace' | 'account' | 'pod' | 'secret' | 'node'>): readonly RequiredObject[] {
  const required = (resource: string, object: NamedObject | undefined, within = namespace): RequiredObject[] =>
    object === undefined ? [] : [{ ref: { resource, namespace: within, name: object.name }, uid: object.uid }];
  return [
    ...required('serviceaccounts', account),
    ...required('pods', pod),
    ...required('secrets', secret),
    ...(pod === undefined ? required('nodes', node, '') : []),
  ];
}

/** Whether the stored object is the one that the token names, and was not deleted. */
export function isAlive(object: KubeObject | undefined, uid: string, nowMs: number): boolean {
  if (object === undefined || object.metadata.uid !== uid) return false;
  const { deletionTimestamp } = object.metadata;
  if (deletionTimestamp === undefined) return true;
  // The deletion of a pod is at the end of its grace period.
  return nowMs < Date.parse(deletionTimestamp) + DELETION_LEEWAY_SECONDS * 1_000;
}

const EXTRA = 'authentication.kubernetes.io';

/** The user of a token. */
export function accountUser({ namespace, account, pod, node, tokenId }: AccountTokenContent): UserInfo {
  return {
    ...serviceAccountInfo(namespace, account.name),
    uid: account.uid,
    extra: {
      [`${EXTRA}/credential-id`]: [`JTI=${tokenId}`],
      ...(pod === undefined ? {} : { [`${EXTRA}/pod-name`]: [pod.name], [`${EXTRA}/pod-uid`]: [pod.uid] }),
      ...(node === undefined ? {} : { [`${EXTRA}/node-name`]: [node.name], [`${EXTRA}/node-uid`]: [node.uid] }),
    },
  };
}

/** The objects that must exist for the user of a token. None for other users, and for an impersonated account. */
export function objectsOfUser({ username, uid, extra = {} }: UserInfo): readonly RequiredObject[] {
  const account = serviceAccountIn(username);
  if (account === undefined || uid === undefined) return [];
  const object = (kind: 'pod' | 'node'): Pick<AccountTokenContent, 'pod' | 'node'> => {
    const [name] = extra[`${EXTRA}/${kind}-name`] ?? [];
    const [objectUid] = extra[`${EXTRA}/${kind}-uid`] ?? [];
    return name === undefined || objectUid === undefined ? {} : { [kind]: { name, uid: objectUid } };
  };
  const { namespace, name } = account;
  return requiredObjects({ namespace, account: { name, uid }, ...object('pod'), ...object('node') });
}
