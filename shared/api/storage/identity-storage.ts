/** Identities and bootstrap tokens of the `control` table as the verbs see them. Neither stands in a change log. */

import { formatTime, parseTimeMs } from '../../kube/time.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { Clock } from '../../ports/clock.ts';
import type { BootstrapTokenStore, StoredBootstrapToken } from '../../store/bootstrap-token-store.ts';
import { RESOURCE_VERSIONS_PER_MS } from '../../store/layout.ts';
import type { NodeIdentity, NodeKeyStore } from '../../store/node-key-store.ts';
import { bootstraptokens, nodeidentities } from '../kinds/identities.ts';
import { apiVersionOf } from '../request/call.ts';
import type { ResourceStorage, WriteResult } from './resource-storage.ts';

const CONFLICT: WriteResult = { kind: 'conflict' };
const nothing = async (): Promise<WriteResult> => CONFLICT;

const outsideTheLog = ({ nowMs }: Clock) => ({
  listVersion: async () => String(nowMs() * RESOURCE_VERSIONS_PER_MS),
  keepsManagedFields: () => false,
  readsInsteadOfLog: () => true,
});

export function identityObject(identity: NodeIdentity): KubeObject {
  const { nodeName, uid, version, createdAtMs, keys, labels, source } = identity;
  return {
    apiVersion: apiVersionOf(nodeidentities),
    kind: nodeidentities.kind,
    metadata: metadataOf(nodeName, uid, version, createdAtMs),
    spec: {
      keys: keys.map(({ keyId, publicKey, addedAtMs }) => ({ keyId, publicKey, addedAt: formatTime(addedAtMs) })),
      ...(labels === undefined ? {} : { nodeLabels: labels }),
      source,
    },
  };
}

/** Version 0 is that of a dry run: nothing is stored. */
const metadataOf = (name: string, uid: string, version: number, createdAtMs: number): KubeObject['metadata'] => ({
  name,
  uid,
  ...(version === 0 ? {} : { resourceVersion: String(version) }),
  creationTimestamp: formatTime(createdAtMs),
});

/** They are made by enrolment (enrolment.ts), not by storing an object. */
export function identityStorage(identities: NodeKeyStore, clock: Clock): ResourceStorage {
  return {
    ...outsideTheLog(clock),
    async get(_namespace, name) {
      const identity = await identities.read(name);
      return identity === undefined ? undefined : identityObject(identity);
    },
    async list({ limit, continueAfter }) {
      const page = await identities.list({ limit, ...(continueAfter === undefined ? {} : { continueAfter }) });
      return {
        items: page.identities.map(identityObject),
        ...(page.next === undefined ? {} : { next: page.next }),
      };
    },
    create: nothing,
    update: nothing,
    async remove(old) {
      const version = Number(old.metadata.resourceVersion);
      const outcome = await identities.remove(old.metadata.name ?? '', { version });
      return outcome === 'removed' ? { kind: 'written', object: old } : CONFLICT;
    },
  };
}

/** Without the hash of the secret: nobody has a use for it. */
function tokenObject(token: StoredBootstrapToken): KubeObject {
  const { id, uid, version, createdAtMs, expiresAtMs, uses, usesLeft, nodeNamePattern, nodeLabels, reissue } = token;
  return {
    apiVersion: apiVersionOf(bootstraptokens),
    kind: bootstraptokens.kind,
    metadata: metadataOf(id, uid, version, createdAtMs),
    spec: {
      expires: formatTime(expiresAtMs),
      uses,
      ...(nodeNamePattern === undefined ? {} : { nodeNamePattern }),
      ...(nodeLabels === undefined ? {} : { nodeLabels }),
      ...(reissue ? { reissue } : {}),
    },
    status: { usesLeft },
  };
}

export function bootstrapTokenStorage(tokens: BootstrapTokenStore, clock: Clock): ResourceStorage {
  return {
    ...outsideTheLog(clock),
    async get(_namespace, name) {
      const token = await tokens.find(name);
      return token === undefined ? undefined : tokenObject(token);
    },
    async list({ limit, continueAfter }) {
      const page = await tokens.list({ limit, ...(continueAfter === undefined ? {} : { continueAfter }) });
      return { items: page.tokens.map(tokenObject), ...(page.next === undefined ? {} : { next: page.next }) };
    },
    /** The object has passed its validation. */
    async create({ metadata, spec = {} }) {
      const uses = Number(spec['uses']);
      const outcome = await tokens.create({
        id: metadata.name ?? '',
        uid: metadata.uid ?? '',
        createdAtMs: clock.nowMs(),
        secretSha256: String(spec['secretSha256']),
        expiresAtMs: parseTimeMs(String(spec['expires'])) ?? 0,
        uses,
        usesLeft: uses,
        reissue: spec['reissue'] === true,
        ...(spec['nodeNamePattern'] === undefined ? {} : { nodeNamePattern: String(spec['nodeNamePattern']) }),
        ...(spec['nodeLabels'] === undefined ? {} : { nodeLabels: spec['nodeLabels'] as Record<string, string> }),
      });
      return outcome.kind === 'created' ? { kind: 'written', object: tokenObject(outcome.token) } : CONFLICT;
    },
    update: nothing,
    async remove(old) {
      const outcome = await tokens.remove(old.metadata.name ?? '', { uid: old.metadata.uid ?? '' });
      return outcome === 'removed' ? { kind: 'written', object: old } : CONFLICT;
    },
  };
}
