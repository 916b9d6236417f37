/**
 * Whether a machine or a bootstrap token may create a CertificateSigningRequest. People need a role.
 *
 * - A machine asks the signers of kubelets for its own name only (upstream plugin/pkg/admission/noderestriction).
 * - A bootstrap token asks for the client certificate of a machine that it may enrol, and for nothing else. With
 *   upstream's tokens every request is created, and waits for somebody who approves it by mistake.
 * - Both have so many requests per hour. They are counted in the `control` table, one item per hour and identity,
 *   because counting the requests themselves would cost more with each one:
 *
 *   pk `signing-requests` sk <start of the hour, ms>-<username>   n: number of requests, ttl epoch seconds
 */

import { NODE_USER_PREFIX, nodeIdentity } from '../../../shared/access/authorize.ts';
import { BOOTSTRAP_GROUP, BOOTSTRAP_USER_PREFIX } from '../../../shared/access/bootstrap-token.ts';
import type { UserInfo } from '../../../shared/access/user-info.ts';
import type { CertificateRequest } from '../../../shared/kinds/certificates/certificate-request.ts';
import { KUBELET_CLIENT_SIGNER, KUBELET_SERVING_SIGNER } from '../../../shared/kinds/certificates/signing-request.ts';
import { nodeNameErrors } from '../../../shared/kubernetes/validate-metadata.ts';
import type { ItemUpdater } from '../../../shared/store/item-store.ts';
import { type EnrolDependencies, enrolNode } from './enrol-node.ts';
import { nodeKeyIn } from './request-signature.ts';

const HOUR_MS = 3_600_000;
/** A kubelet without an approval tries again five times in ten minutes. */
const OF_MACHINE_MAX = 60;
/** A machine may lose an answer, or restart while it waits. */
const OF_TOKEN_PER_USE_MAX = 4;

export interface SigningRequester {
  readonly user: UserInfo;
  readonly signerName: string;
  readonly request: CertificateRequest;
  readonly nowMs: number;
  /** Decide, count nothing. */
  readonly dryRun: boolean;
}

/** Why the request is refused. undefined: it is not. */
export type RefuseSigningRequest = (requester: SigningRequester) => Promise<string | undefined>;

export function refuseSigningRequests(items: ItemUpdater, enrolment: EnrolDependencies): RefuseSigningRequest {
  return async (requester) => {
    const { user } = requester;
    const identity = nodeIdentity({ name: user.username, groups: user.groups });
    if (identity.kind !== 'notANode') {
      return otherName(requester) ?? (await overShare(items, requester, OF_MACHINE_MAX));
    }
    if (!user.groups.includes(BOOTSTRAP_GROUP)) return undefined;
    const id = user.username.slice(BOOTSTRAP_USER_PREFIX.length);
    const token = user.username.startsWith(BOOTSTRAP_USER_PREFIX) ? await enrolment.tokens.find(id) : undefined;
    if (token === undefined) return 'only a bootstrap token that exists may ask for the certificate of a machine';
    return (
      (await refusedEnrolment(enrolment, requester, id)) ??
      (await overShare(items, requester, OF_TOKEN_PER_USE_MAX * token.uses))
    );
  };
}

function otherName({ user, signerName, request }: SigningRequester): string | undefined {
  const isOfKubelets = signerName === KUBELET_CLIENT_SIGNER || signerName === KUBELET_SERVING_SIGNER;
  if (!isOfKubelets || request.commonName === user.username) return undefined;
  return `can only create a node CSR with CN=${user.username}`;
}

async function refusedEnrolment(
  enrolment: EnrolDependencies,
  { signerName, request, nowMs }: SigningRequester,
  id: string,
): Promise<string | undefined> {
  const key = nodeKeyIn(request);
  if (signerName !== KUBELET_CLIENT_SIGNER || !request.commonName.startsWith(NODE_USER_PREFIX)) {
    return `a bootstrap token may ask ${KUBELET_CLIENT_SIGNER} for the certificate of a machine only`;
  }
  if (key.kind === 'invalid') return `the key ${key.why}`;
  const nodeName = request.commonName.slice(NODE_USER_PREFIX.length);
  const [error] = nodeNameErrors(nodeName);
  if (error !== undefined) return `node ${JSON.stringify(nodeName)}: ${error}`;
  const by = { kind: 'bootstrapToken', id } as const;
  const answer = await enrolNode(enrolment, { nodeName, key, by, nowMs, dryRun: true });
  switch (answer.kind) {
    case 'created':
    case 'present':
      return undefined;
    case 'taken':
      return `node ${nodeName} has an identity: bootstrap token ${id} was not created with --reissue`;
    case 'contended':
      return 'other writers are changing the identity of this node: try again';
    default:
      return answer.reason;
  }
}

async function overShare(
  items: ItemUpdater,
  { user, nowMs, dryRun }: SigningRequester,
  max: number,
): Promise<string | undefined> {
  if (dryRun) return undefined;
  const hourMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
  const counted = await items.write({
    kind: 'update',
    key: { table: 'control', pk: 'signing-requests', sk: `${hourMs}-${user.username}` },
    setIfAbsent: { ttl: (hourMs + 2 * HOUR_MS) / 1_000 },
    add: { n: 1 },
    when: {
      kind: 'any',
      of: [
        { kind: 'lacks', attribute: 'n' },
        { kind: 'compare', attribute: 'n', op: '<', value: max },
      ],
    },
  });
  if (counted.kind === 'written') return undefined;
  return `${user.username} has created ${max} certificate signing requests this hour, and may create no more`;
}
