/** NodeIdentity and BootstrapToken. Limits are those of shared/access/bootstrap-token.ts. */
import {
  BOOTSTRAP_LIFE_SECONDS_MAX,
  BOOTSTRAP_USES_MAX,
  isBootstrapTokenId,
  isNamePattern,
} from '../../access/bootstrap-token.ts';
import { isForbiddenNodeLabel } from '../../access/node-restriction.ts';
import { invalidValue, required, tooMany } from '../../kubernetes/causes.ts';
import { NAME_LENGTH_MAX } from '../../kubernetes/kubernetes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { parseTimeMs } from '../../kubernetes/time.ts';
import { type NameRule, nodeName, validateLabels, validateObjectMetadata } from '../../kubernetes/validate-metadata.ts';
import type { KubeBootstrapToken, KubeNodeIdentity } from '../types.ts';

const LABELS_MAX = 64;

const tokenName: NameRule = (name) =>
  isBootstrapTokenId(name) ? [] : ['must be 6 to 20 lower-case letters and digits'];

function validateNodeLabels(labels: Readonly<Record<string, string>> = {}): Cause[] {
  const count = Object.keys(labels).length;
  if (count > LABELS_MAX) return [tooMany('spec.nodeLabels', count, LABELS_MAX)];
  // The machine registers its Node with these labels, so they must be labels that a node may set.
  const forbidden = Object.keys(labels).filter(isForbiddenNodeLabel);
  return [
    ...validateLabels(labels, 'spec.nodeLabels'),
    ...forbidden.map((key) => invalidValue('spec.nodeLabels', key, 'a node may not set this label on itself')),
  ];
}

/** The identity in an enrolment request. The caller checks the key itself. */
export function validateNodeIdentity(identity: KubeNodeIdentity): Cause[] {
  const causes = validateObjectMetadata(identity, undefined, { namespaced: false, name: nodeName });
  if (identity.spec?.publicKey === undefined) causes.push(required('spec.publicKey'));
  return [...causes, ...validateNodeLabels(identity.spec?.nodeLabels)];
}

export function validateBootstrapToken(token: KubeBootstrapToken): Cause[] {
  const causes = validateObjectMetadata(token, undefined, { namespaced: false, name: tokenName });
  const { secretSha256 = '', expires, uses, nodeNamePattern, nodeLabels } = token.spec ?? {};
  if (!/^[0-9a-f]{64}$/.test(secretSha256)) {
    causes.push(invalidValue('spec.secretSha256', '', 'must be a SHA-256 in lower-case hex'));
  }
  const createdMs = parseTimeMs(token.metadata.creationTimestamp) ?? 0;
  const expiresMs = parseTimeMs(expires);
  if (expiresMs === undefined) causes.push(required('spec.expires'));
  else if (expiresMs <= createdMs) causes.push(invalidValue('spec.expires', expires, 'must be in the future'));
  else if (expiresMs - createdMs > BOOTSTRAP_LIFE_SECONDS_MAX * 1_000) {
    const days = BOOTSTRAP_LIFE_SECONDS_MAX / 86_400;
    causes.push(invalidValue('spec.expires', expires, `must be within ${days} days`));
  }
  if (uses === undefined || uses < 1 || uses > BOOTSTRAP_USES_MAX) {
    causes.push(invalidValue('spec.uses', uses, `must be from 1 to ${BOOTSTRAP_USES_MAX}`));
  }
  if (nodeNamePattern !== undefined && !isNamePattern(nodeNamePattern)) {
    causes.push(
      invalidValue(
        'spec.nodeNamePattern',
        nodeNamePattern,
        `must be characters of node names, '*' and '?', at most ${NAME_LENGTH_MAX}`,
      ),
    );
  }
  return [...causes, ...validateNodeLabels(nodeLabels)];
}
