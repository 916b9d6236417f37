/**
 * Creates the identity of a machine, or adds a key to it. The credential of the request decides which:
 * - A bootstrap token enrols a free name, or an existing one if the token has `reissue`. The name of a Node without an
 *   identity needs `reissue`, or a token for this name.
 * - An instance identity document enrols a free name, once per instance.
 * - An administrator enrols a free name.
 * - A node rotates its own keys.
 *
 * The use of a token is counted in the transaction that writes the identity (takeUseWrite). A repeated request with the
 * same key returns the existing identity, because the first response may have been lost.
 */

import { bootstrapVerdict } from '../../../shared/access/bootstrap-token.ts';
import { type BootstrapTokenStore, takeUseWrite } from '../../../shared/access/bootstrap-token-store.ts';
import { keysAfterRotation, type NodeKey } from '../../../shared/access/node-identity.ts';
import { claimInstanceWrite, type NodeIdentity, type NodeKeyStore } from '../../../shared/access/node-key-store.ts';
import { type Backoff, backoffMs } from '../../../shared/backoff.ts';
import type { RandomSource } from '../../../shared/clock.ts';
import { defined } from '../../../shared/defined.ts';
import type { Cloud } from '../../../shared/fleet/instances/cloud.ts';
import type { TransactWrite } from '../../../shared/store/item-store.ts';
import { instanceEnrolmentVerdict } from './instance-identity.ts';

export interface EnrolDependencies {
  readonly identities: NodeKeyStore;
  readonly tokens: BootstrapTokenStore;
  /** Strongly consistent. */
  readonly hasNode: (nodeName: string) => Promise<boolean>;
  readonly random: RandomSource;
  /** Waits. Milliseconds. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
  /** Absent: instances cannot enrol by their identity documents. */
  readonly cloud?: Pick<Cloud, 'describeInstances'>;
}

export type EnrolledBy =
  | { readonly kind: 'bootstrapToken'; readonly id: string }
  | { readonly kind: 'user'; readonly name: string; readonly labels?: Readonly<Record<string, string>> }
  /** Authenticated by its identity document. */
  | { readonly kind: 'instance'; readonly instanceId: string }
  /** Authenticated as this node, with this key. */
  | { readonly kind: 'node'; readonly keyId: string };

export interface EnrolRequest {
  readonly nodeName: string;
  readonly key: Pick<NodeKey, 'keyId' | 'publicKey'>;
  readonly by: EnrolledBy;
  readonly nowMs: number;
  /** Decide, write nothing. */
  readonly dryRun: boolean;
}

export type EnrolAnswer =
  | { readonly kind: 'created'; readonly identity: NodeIdentity }
  /** The identity existed before, and has the key now. */
  | { readonly kind: 'present'; readonly identity: NodeIdentity }
  | { readonly kind: 'forbidden'; readonly reason: string }
  | { readonly kind: 'taken' }
  /** A service that must confirm the enrolment did not respond. */
  | { readonly kind: 'unavailable'; readonly reason: string }
  /** Other writers won every attempt. */
  | { readonly kind: 'contended' };

/** Attempts when other writers change the identity. Each attempt decides again by the current state. */
const ENROL_ATTEMPTS_MAX = 6;
const PAUSES: Backoff = { firstMs: 20, limitMs: 500, jitter: [0.5, 1] };

export async function enrolNode(dependencies: EnrolDependencies, request: EnrolRequest): Promise<EnrolAnswer> {
  for (let attempt = 1; attempt <= ENROL_ATTEMPTS_MAX; attempt += 1) {
    const answer =
      request.by.kind === 'node'
        ? await rotate(dependencies, request, request.by.keyId)
        : await enrol(dependencies, request, request.by);
    if (answer !== undefined) return answer;
  }
  return { kind: 'contended' };
}

/** Returns undefined when the state changed in the meantime: the caller decides again. */
async function enrol(
  dependencies: EnrolDependencies,
  request: EnrolRequest,
  by: Exclude<EnrolledBy, { kind: 'node' }>,
): Promise<EnrolAnswer | undefined> {
  const { nodeName, key, nowMs } = request;
  const existing = await dependencies.identities.read(nodeName);
  if (existing?.keys.some(({ keyId }) => keyId === key.keyId)) return { kind: 'present', identity: existing };
  const grant = await grantOf(dependencies, by, { nodeName, nowMs, taken: existing !== undefined });
  if (grant.kind !== 'granted') return grant;
  const identity = {
    nodeName,
    uid: dependencies.random.uuid(),
    createdAtMs: nowMs,
    keys: [{ keyId: key.keyId, publicKey: key.publicKey, addedAtMs: nowMs }],
    source: grant.source,
    ...defined({ labels: grant.labels }),
  };
  if (request.dryRun) return { kind: 'created', identity: { ...identity, version: 0 } };
  const outcome = await dependencies.identities.enrol(identity, {
    nowMs,
    ...defined({ replaces: existing }),
    along: grant.along,
    pause: (attempt) => pauseBefore(dependencies, attempt),
  });
  return outcome.kind === 'enrolled' ? { kind: 'created', identity: outcome.identity } : undefined;
}

type Grant =
  | {
      readonly kind: 'granted';
      readonly source: string;
      readonly labels?: Readonly<Record<string, string>> | undefined;
      readonly along: readonly TransactWrite[];
    }
  | Extract<EnrolAnswer, { kind: 'forbidden' | 'taken' | 'unavailable' }>;

async function grantOf(
  dependencies: EnrolDependencies,
  by: Exclude<EnrolledBy, { kind: 'node' }>,
  wanted: { readonly nodeName: string; readonly nowMs: number; readonly taken: boolean },
): Promise<Grant> {
  if (by.kind === 'user') {
    return wanted.taken
      ? { kind: 'taken' }
      : { kind: 'granted', source: `user/${by.name}`, labels: by.labels, along: [] };
  }
  if (by.kind === 'instance') return grantToInstance(dependencies, by.instanceId, wanted);
  const token = await dependencies.tokens.find(by.id);
  if (token === undefined) return { kind: 'forbidden', reason: `bootstrap token ${by.id} was revoked` };
  const use = wanted.taken ? 'identity' : (await dependencies.hasNode(wanted.nodeName)) ? 'node' : 'free';
  const verdict = bootstrapVerdict(token, { ...wanted, use });
  if (verdict.kind !== 'granted') return verdict;
  return {
    kind: 'granted',
    source: `bootstraptoken/${token.id}`,
    labels: token.nodeLabels,
    along: [takeUseWrite(token, wanted.nowMs)],
  };
}

/**
 * An instance cannot enrol under an existing name, not even its own. If it lost its key, an administrator enrols it
 * again.
 */
async function grantToInstance(
  { cloud, identities }: EnrolDependencies,
  instanceId: string,
  { nodeName, nowMs, taken }: { readonly nodeName: string; readonly nowMs: number; readonly taken: boolean },
): Promise<Grant> {
  if (cloud === undefined)
    return { kind: 'forbidden', reason: 'this cluster does not enrol instances by their identity documents' };
  if (taken) return { kind: 'taken' };
  if (await identities.hasEnrolled(instanceId)) {
    return { kind: 'forbidden', reason: `instance ${instanceId} has enrolled before` };
  }
  const instances = await cloud.describeInstances([{ instanceId, zone: undefined, region: undefined }]);
  const known = instances.get(instanceId);
  const verdict = instanceEnrolmentVerdict(nodeName, instanceId, {
    answer: known?.answer ?? { kind: 'notFound' },
    addresses: known?.metadata?.addresses ?? [],
  });
  if (verdict.kind !== 'granted') return verdict;
  const along = [claimInstanceWrite(instanceId, nodeName, nowMs)];
  return { kind: 'granted', source: `instance/${instanceId}`, along };
}

async function rotate(
  { identities }: EnrolDependencies,
  { nodeName, key, nowMs, dryRun }: EnrolRequest,
  signingKeyId: string,
): Promise<EnrolAnswer | undefined> {
  const existing = await identities.read(nodeName);
  const wanted = { keyId: key.keyId, publicKey: key.publicKey, addedAtMs: nowMs };
  const keys = existing === undefined ? undefined : keysAfterRotation(existing.keys, signingKeyId, wanted);
  if (existing === undefined || keys === undefined) {
    return { kind: 'forbidden', reason: 'the key that signed this request was revoked' };
  }
  const unchanged =
    keys.length === existing.keys.length && keys.every((each, index) => each.keyId === existing.keys[index]?.keyId);
  if (unchanged || dryRun) return { kind: 'present', identity: { ...existing, keys } };
  const outcome = await identities.replaceKeys(existing, keys, nowMs);
  return outcome.kind === 'written' ? { kind: 'present', identity: outcome.identity } : undefined;
}

/** Exponential backoff. Half of the wait is random: the same machines must not conflict again. */
const pauseBefore = ({ pause, random }: EnrolDependencies, attempt: number): Promise<unknown> =>
  pause(backoffMs(PAUSES, attempt - 1, random.fraction()));
