/** Requests for this machine's identity, and how their answers are read (docs/security.md, "The protocol"). */
import type { NodePublicKey } from '../../shared/access/node-identity.ts';
import { recordsOf } from '../../shared/kubernetes/normal-form.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import type { KubeAnswer, KubeRequest } from '../ports/kube-api.ts';
import type { EnrolledKey } from './key-rotation.ts';
import { answeredWith, objectIn } from './kube-answer.ts';

const IDENTITIES_PATH = '/apis/nodekeeper.dev/v1alpha1/nodeidentities';

/**
 * Sent with a bootstrap token, it creates an identity. Sent with a token signed by a key of the identity, it leaves
 * that key and this one, and deletes the others.
 */
export const enrolRequest = (nodeName: string, publicKey: NodePublicKey): KubeRequest => ({
  method: 'POST',
  path: IDENTITIES_PATH,
  body: {
    apiVersion: 'nodekeeper.dev/v1alpha1',
    kind: 'NodeIdentity',
    metadata: { name: nodeName },
    spec: { publicKey },
  },
});

export const identityRequest = (nodeName: string): KubeRequest => ({
  method: 'GET',
  path: `${IDENTITIES_PATH}/${encodeURIComponent(nodeName)}`,
});

export interface StoredIdentity {
  /** Entries with a readable id and time. */
  readonly keys: readonly EnrolledKey[];
  readonly nodeLabels: Readonly<Record<string, string>>;
}

/** Undefined when the answer is not an identity. */
export function identityIn(answer: KubeAnswer): StoredIdentity | undefined {
  const spec = answeredWith(answer, 200, 201) ? objectIn(answer)?.spec : undefined;
  if (spec === undefined) return undefined;
  const keys = recordsOf(spec['keys']).flatMap(({ keyId, addedAt }) => {
    const addedAtMs = typeof addedAt === 'string' ? parseTimeMs(addedAt) : undefined;
    return typeof keyId === 'string' && addedAtMs !== undefined ? [{ keyId, addedAtMs }] : [];
  });
  return { keys, nodeLabels: (spec['nodeLabels'] ?? {}) as Readonly<Record<string, string>> };
}
