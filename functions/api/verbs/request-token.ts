/**
 * POST of serviceaccounts/token: a token for a service account. Kubernetes: "Managing Service Accounts", TokenRequest;
 * upstream pkg/registry/core/serviceaccount/storage/token.go, and plugin/pkg/admission/noderestriction for nodes.
 */

import {
  ACCOUNT_ISSUER,
  ACCOUNT_TOKEN_SECONDS_MAX,
  type AccountTokenContent,
} from '../../../shared/access/account-token.ts';
import { nodeIdentity } from '../../../shared/access/authorize.ts';
import { podReferenceFault, tokenRequestFault } from '../../../shared/access/node-restriction.ts';
import type { Call } from '../../../shared/api/call.ts';
import { defined } from '../../../shared/defined.ts';
import { validateTokenSeconds } from '../../../shared/kinds/pods/validate-volumes.ts';
import { nodes, pods } from '../../../shared/kinds/registry.ts';
import { secrets } from '../../../shared/kinds/secrets/serve.ts';
import { serviceaccounts } from '../../../shared/kinds/serviceaccounts/serve.ts';
import type { KubeObject, KubePod } from '../../../shared/kinds/types.ts';
import { invalidValue } from '../../../shared/kubernetes/causes.ts';
import { type HttpResponse, json } from '../../../shared/kubernetes/http.ts';
import { dryRunOf } from '../../../shared/kubernetes/request.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import type { ServeDependencies } from '../dependencies.ts';
import { readSubresourceBody } from './subresource-calls.ts';

const TOKEN_REQUEST = { group: 'authentication.k8s.io', kind: 'TokenRequest' };
const DEFAULT_SECONDS = 3_600;
/** Audiences of one token, and characters of all of them: a token must fit into a header. */
const AUDIENCES_MAX = 32;
const AUDIENCE_CHARACTERS_MAX = 2_000;

interface BoundObjectRef {
  readonly kind?: string;
  readonly apiVersion?: string;
  readonly name?: string;
  readonly uid?: string;
}

interface TokenRequest extends KubeObject {
  readonly spec?: {
    readonly audiences?: readonly string[];
    readonly expirationSeconds?: number;
    readonly boundObjectRef?: BoundObjectRef;
  };
}

export async function requestToken(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { issueToken, storageOf, random } = dependencies;
  if (issueToken === undefined) throw status.methodNotAllowed(call.descriptor, 'create');
  const { target, nowMs } = call;
  const request: TokenRequest = await readSubresourceBody(call, 'TokenRequest', ['authentication.k8s.io/v1']);
  const { audiences = [], boundObjectRef, expirationSeconds = DEFAULT_SECONDS } = request.spec ?? {};
  refuseInvalidSpec(audiences, expirationSeconds);
  const account = await storageOf(serviceaccounts).get(target.namespace, target.name);
  const bound = await admittedBound(dependencies, call, request);
  if (account === undefined) throw status.notFound(serviceaccounts, target.name);
  const seconds = Math.min(expirationSeconds, ACCOUNT_TOKEN_SECONDS_MAX);
  const issuedAt = Math.floor(nowMs / 1_000);
  const content: AccountTokenContent = {
    namespace: target.namespace,
    account: named(account),
    ...(await boundTo(dependencies, bound)),
    audiences: audiences.length === 0 ? [ACCOUNT_ISSUER] : audiences,
    issuedAt,
    expiresAt: issuedAt + seconds,
    tokenId: random.uuid(),
  };
  const isDryRun = dryRunOf(call.request.query, 'CreateOptions');
  return json(201, {
    kind: TOKEN_REQUEST.kind,
    apiVersion: 'authentication.k8s.io/v1',
    metadata: { name: target.name, namespace: target.namespace, creationTimestamp: formatTime(nowMs) },
    spec: { audiences: content.audiences, expirationSeconds: seconds, boundObjectRef: boundObjectRef ?? null },
    status: {
      token: isDryRun ? '' : await issueToken(content, nowMs),
      expirationTimestamp: formatTime(content.expiresAt * 1_000),
    },
  });
}

function refuseInvalidSpec(audiences: readonly string[], seconds: number): void {
  const causes = validateTokenSeconds('spec.expirationSeconds', seconds);
  const characters = audiences.reduce((sum, audience) => sum + audience.length, 0);
  if (audiences.length > AUDIENCES_MAX || characters > AUDIENCE_CHARACTERS_MAX || audiences.includes('')) {
    const rule = `must be at most ${AUDIENCES_MAX} texts of together ${AUDIENCE_CHARACTERS_MAX} characters, none empty`;
    causes.push(invalidValue('spec.audiences', audiences, rule));
  }
  if (causes.length > 0) throw status.invalid(TOKEN_REQUEST, '', causes);
}

const BINDABLE = new Map([
  ['Pod', pods],
  ['Secret', secrets],
  ['Node', nodes],
]);

interface Bound {
  readonly kind: string;
  readonly object: KubeObject;
}

/** The object that the token is bound to. A node is refused first: it must not learn what exists elsewhere. */
async function admittedBound(
  dependencies: ServeDependencies,
  call: Call,
  request: TokenRequest,
): Promise<Bound | undefined> {
  const { user, target } = call;
  const { boundObjectRef, audiences = [] } = request.spec ?? {};
  const identity = nodeIdentity({ name: user.username, groups: user.groups });
  const refuse = (fault: string | undefined): void => {
    if (fault !== undefined) throw status.forbidden(serviceaccounts, target.name, fault);
  };
  if (identity.kind === 'node') refuse(podReferenceFault(boundObjectRef));
  if (boundObjectRef === undefined) return undefined;
  const bound = await readBound(dependencies, call, boundObjectRef);
  if (identity.kind === 'node') {
    refuse(tokenRequestFault(identity.nodeName, { boundObjectRef, audiences, pod: bound.object }));
  }
  refuseOtherBound(call, boundObjectRef, bound);
  return bound;
}

/** @throws StatusError 400 for another kind, 404 without the object */
async function readBound({ storageOf }: ServeDependencies, { target }: Call, ref: BoundObjectRef): Promise<Bound> {
  const { kind = '', apiVersion = '', name = '' } = ref;
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
  const descriptor = group === '' ? BINDABLE.get(kind) : undefined;
  if (descriptor === undefined) {
    throw status.badRequest(`cannot bind token to object of type ${group}/${version}, Kind=${kind}`);
  }
  const object = await storageOf(descriptor).get(descriptor.namespaced ? target.namespace : '', name);
  if (object === undefined) throw status.notFound(descriptor, name);
  return { kind, object };
}

/** @throws StatusError 400 for a pod of another account, 409 for another uid */
function refuseOtherBound({ target }: Call, { name = '', uid = '' }: BoundObjectRef, { kind, object }: Bound): void {
  if (kind === 'Pod' && (object as KubePod).spec?.['serviceAccountName'] !== target.name) {
    throw status.badRequest(
      `cannot bind token for serviceaccount ${status.quote(target.name)} to pod running with different serviceaccount name.`,
    );
  }
  if (uid !== '' && uid !== object.metadata.uid) {
    const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`;
    throw status.conflict({ group: '', resource: kind }, name, why);
  }
}

const named = ({ metadata }: KubeObject) => ({ name: metadata.name ?? '', uid: metadata.uid ?? '' });

/** The members of the token for the object that it is bound to. A pod's token names its node, for information. */
async function boundTo({ storageOf }: ServeDependencies, bound: Bound | undefined) {
  switch (bound?.kind) {
    case 'Pod': {
      const nodeName = (bound.object as KubePod).spec?.nodeName ?? '';
      const node = nodeName === '' ? undefined : await storageOf(nodes).get('', nodeName);
      return { pod: named(bound.object), ...defined({ node: node && named(node) }) };
    }
    case 'Secret':
      return { secret: named(bound.object) };
    case 'Node':
      return { node: named(bound.object) };
    default:
      return {};
  }
}
