/** The storage of identities and bootstrap tokens, in the `control` table. Neither has a change log. */

import {
  type BootstrapTokenStore,
  bootstrapTokenStore,
  type StoredBootstrapToken,
} from '../../access/bootstrap-token-store.ts';
import { type NodeIdentity, type NodeKeyStore, nodeKeyStore } from '../../access/node-key-store.ts';
import type { KindStorage } from '../../api/kind-storage.ts';
import type { ResourceStorage, WriteResult } from '../../api/resource-storage.ts';
import type { Clock } from '../../clock.ts';
import { defined } from '../../defined.ts';
import { apiVersionOf } from '../../kubernetes/normal-form.ts';
import { formatTime, parseTimeMs } from '../../kubernetes/time.ts';
import { RESOURCE_VERSIONS_PER_MS } from '../../store/layout.ts';
import type { KubeBootstrapToken, KubeObject, ObjectMeta } from '../types.ts';
import { bootstraptokens, nodeidentities } from './serve.ts';

const CONFLICT: WriteResult = { kind: 'conflict' };
const refused = async (): Promise<WriteResult> => CONFLICT;

const withoutLog = ({ nowMs }: Clock) => ({
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
      ...defined({ nodeLabels: labels }),
      source,
    },
  };
}

/** Version 0 means a dry run, in which nothing is stored. */
const metadataOf = (name: string, uid: string, version: number, createdAtMs: number): ObjectMeta => ({
  name,
  uid,
  ...defined({ resourceVersion: version === 0 ? undefined : String(version) }),
  creationTimestamp: formatTime(createdAtMs),
});

/** Enrolment creates identities (access/enrolment.ts), so this storage refuses creations. */
export function identityStorage(identities: NodeKeyStore, clock: Clock): ResourceStorage {
  return {
    ...withoutLog(clock),
    async get(_namespace, name) {
      const identity = await identities.read(name);
      return identity === undefined ? undefined : identityObject(identity);
    },
    async list({ limit, continueAfter }) {
      const page = await identities.list({ limit, ...defined({ continueAfter }) });
      return {
        items: page.identities.map(identityObject),
        ...defined({ next: page.next }),
      };
    },
    create: refused,
    update: refused,
    async remove(old) {
      const version = Number(old.metadata.resourceVersion);
      const outcome = await identities.remove(old.metadata.name ?? '', { version });
      return outcome === 'removed' ? { kind: 'written', object: old } : CONFLICT;
    },
  };
}

/** The token as an object, without the hash of its secret: no client needs it. */
function tokenObject(token: StoredBootstrapToken): KubeObject {
  const { id, uid, version, createdAtMs, expiresAtMs, uses, usesLeft, nodeNamePattern, nodeLabels, reissue } = token;
  return {
    apiVersion: apiVersionOf(bootstraptokens),
    kind: bootstraptokens.kind,
    metadata: metadataOf(id, uid, version, createdAtMs),
    spec: {
      expires: formatTime(expiresAtMs),
      uses,
      ...defined({ nodeNamePattern, nodeLabels, reissue: reissue ? true : undefined }),
    },
    status: { usesLeft },
  };
}

export function bootstrapTokenStorage(tokens: BootstrapTokenStore, clock: Clock): ResourceStorage {
  return {
    ...withoutLog(clock),
    async get(_namespace, name) {
      const token = await tokens.find(name);
      return token === undefined ? undefined : tokenObject(token);
    },
    async list({ limit, continueAfter }) {
      const page = await tokens.list({ limit, ...defined({ continueAfter }) });
      return { items: page.tokens.map(tokenObject), ...defined({ next: page.next }) };
    },
    /** @param object an object that passed its validation */
    async create({ metadata, spec = {} }: KubeBootstrapToken) {
      const { uses = 1, secretSha256 = '', expires, reissue = false, nodeNamePattern, nodeLabels } = spec;
      const outcome = await tokens.create({
        id: metadata.name ?? '',
        uid: metadata.uid ?? '',
        createdAtMs: clock.nowMs(),
        secretSha256,
        expiresAtMs: parseTimeMs(expires) ?? 0,
        uses,
        usesLeft: uses,
        reissue,
        ...defined({ nodeNamePattern, nodeLabels }),
      });
      return outcome.kind === 'created' ? { kind: 'written', object: tokenObject(outcome.token) } : CONFLICT;
    },
    update: refused,
    async remove(old) {
      const outcome = await tokens.remove(old.metadata.name ?? '', { uid: old.metadata.uid ?? '' });
      return outcome === 'removed' ? { kind: 'written', object: old } : CONFLICT;
    },
  };
}

export const identityStorages: readonly KindStorage[] = [
  [nodeidentities, (_, { items, clock }) => identityStorage(nodeKeyStore(items), clock)],
  [bootstraptokens, (_, { items, clock }) => bootstrapTokenStorage(bootstrapTokenStore(items), clock)],
];
