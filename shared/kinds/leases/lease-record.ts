/**
 * Lease objects (coordination.k8s.io/v1) and the attributes of a row that hold one. Times are microseconds, as
 * metav1.MicroTime has them. The fields that a kubelet or our agent writes have short attributes. The others (labels,
 * annotations, other owners, rare spec fields) share one JSON text with a size limit: a row stays below 1 KB, and a
 * beat costs one write unit.
 */

import { defined } from '../../defined.ts';
import { DIGEST, hasDigest, hasLease, LEASE } from '../../fleet/nodes/health.ts';
import { HEARTBEAT_URL_ANNOTATION } from '../../fleet/nodes/heartbeat-url.ts';
import {
  BEAT_INTERVAL_ANNOTATION,
  type BeatTimes,
  DEFAULT_PROFILE,
  LEASE_DURATION_ANNOTATION,
} from '../../fleet/nodes/node-profile.ts';
import { parseUsage, USAGE_ANNOTATION } from '../../fleet/nodes/node-usage.ts';
import { SILENT_MACHINES_ANNOTATION } from '../../fleet/silent-machines.ts';
import { canonicalMicroTime, formatTime, parseTimeMs } from '../../kubernetes/time.ts';
import type { Item } from '../../store/item-store.ts';
import { changeOf, readRow } from '../../store/layout.ts';
import { utf8Bytes } from '../../text.ts';
import type { KubeObject, LeaseSpec, OwnerReference } from '../types.ts';
import { LEASE_NAMESPACE } from './resource.ts';

/**
 * Annotation in the response to a beat, once pods of the node have changed. If its value differs from the last
 * response, the pods changed in between and the node lists them again, so no node needs a watch. Clients send the Lease
 * back as they received it; the annotation is never stored.
 */
export const PODS_VERSION_ANNOTATION = 'nodekeeper.dev/pods-version';

/**
 * Annotation in the response to a beat, once a log of one of the node's pods has been requested. If its value differs
 * from the last response, the node lists its log requests. It is never stored.
 */
export const LOGS_VERSION_ANNOTATION = 'nodekeeper.dev/logs-version';
/** The same for volumes that the agent makes or removes. */
export const VOLUMES_VERSION_ANNOTATION = 'nodekeeper.dev/volumes-version';
/** The same for Services, their endpoints and NetworkPolicies. */
export const SERVICES_VERSION_ANNOTATION = 'nodekeeper.dev/services-version';

/**
 * Bytes of the JSON text, a holder other than the node, and the usage of the machine, together. The other attributes of
 * a row need at most 580: two names of 253 and 129, two uids, and numbers.
 */
export const LEASE_EXTRAS_BYTES_MAX = 400;

export interface Lease extends KubeObject {
  readonly apiVersion: 'coordination.k8s.io/v1';
  readonly kind: 'Lease';
  spec: LeaseSpec & Record<string, unknown>;
}

interface Extras {
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly ownerReferences?: OwnerReference[];
  readonly finalizers?: string[];
  readonly spec?: Record<string, unknown>;
}

/** The changes that a write of a Lease makes to its row, besides version, receipt time, uid and creation. */
export interface LeaseChange {
  readonly nodeName: string;
  readonly set: Item;
  readonly remove: readonly string[];
  /**
   * uid of the Node, if the Lease has its Node as its only owner, as with kubelets. The owner is stored as one flag if
   * the row's digest has this uid. Otherwise it is stored in full (`spelledOut`).
   */
  readonly ownerUid?: string;
  readonly spelledOut: { readonly set: Item; readonly remove: readonly string[] };
}

export type LeaseChangeResult =
  | { readonly kind: 'change'; readonly change: LeaseChange }
  /** Labels, annotations and the like exceed LEASE_EXTRAS_BYTES_MAX. */
  | { readonly kind: 'tooLarge'; readonly bytes: number }
  /** The patch needs the stored Lease: read it, apply the patch, and replace it. */
  | { readonly kind: 'needsRead' };

const SPEC_FIELDS = {
  holderIdentity: LEASE.holder.name,
  leaseDurationSeconds: LEASE.durationSeconds.name,
  leaseTransitions: LEASE.transitions.name,
};
const TIME_FIELDS = { renewTime: LEASE.renewedAtMicros.name, acquireTime: LEASE.acquiredAtMicros.name };

/** Microseconds since the epoch. Throws a RangeError for an invalid time; callers validate first. */
export function microsOf(text: string): number {
  const epochMs = parseTimeMs(text);
  if (epochMs === undefined) throw new RangeError('no RFC 3339 time');
  return Math.floor(epochMs / 1_000) * 1_000_000 + Number(canonicalMicroTime(text).slice(-7, -1));
}

/** `2001-02-03T04:05:06.789012Z` */
export function microTimeText(micros: number): string {
  const seconds = Math.floor(micros / 1_000_000);
  return `${formatTime(seconds * 1_000).slice(0, -1)}.${String(micros - seconds * 1_000_000).padStart(6, '0')}Z`;
}

/** The row of a whole Lease, for create and PUT. The Lease has passed validation. */
export function leaseReplacement(lease: KubeObject): LeaseChangeResult {
  const { metadata } = lease;
  const nodeName = metadata.name ?? '';
  const spec: LeaseSpec & Record<string, unknown> = lease.spec ?? {};
  const { renewTime, acquireTime, holderIdentity, leaseDurationSeconds, leaseTransitions, ...rareSpec } = spec;
  const { labels, ownerReferences = [], finalizers } = metadata;
  const {
    [PODS_VERSION_ANNOTATION]: _pods,
    [LOGS_VERSION_ANNOTATION]: _logs,
    [VOLUMES_VERSION_ANNOTATION]: _volumes,
    [SERVICES_VERSION_ANNOTATION]: _services,
    [BEAT_INTERVAL_ANNOTATION]: _interval,
    [LEASE_DURATION_ANNOTATION]: _duration,
    [HEARTBEAT_URL_ANNOTATION]: _url,
    [SILENT_MACHINES_ANNOTATION]: _silent,
    [USAGE_ANNOTATION]: usage,
    ...others
  } = metadata.annotations ?? {};
  const isUsage = parseUsage(usage) !== undefined;
  const annotations = isUsage || usage === undefined ? others : { ...others, [USAGE_ANNOTATION]: usage };
  const owner = ownerReferences.length === 1 ? ownerReferences[0] : undefined;
  const ownerUid = owner !== undefined && isOwnNode(owner, nodeName) ? owner.uid : undefined;
  const extras: Extras = {
    ...(isEmpty(labels) ? {} : { labels }),
    ...(isEmpty(annotations) ? {} : { annotations }),
    ...(isEmpty(finalizers) ? {} : { finalizers }),
    ...(isEmpty(rareSpec) ? {} : { spec: rareSpec }),
  };
  const spelled: Extras = { ...extras, ...(ownerReferences.length === 0 ? {} : { ownerReferences }) };
  const values = {
    renewedAtMicros: typeof renewTime === 'string' ? microsOf(renewTime) : undefined,
    acquiredAtMicros: typeof acquireTime === 'string' ? microsOf(acquireTime) : undefined,
    holder: storedHolder(holderIdentity, nodeName),
    durationSeconds: leaseDurationSeconds ?? undefined,
    transitions: leaseTransitions ?? undefined,
    usage: isUsage ? usage : undefined,
    extras: extrasText(ownerUid === undefined ? spelled : extras),
    ownedByNode: ownerUid !== undefined,
  };
  const bytes = [values.extras, values.holder, values.usage].reduce((sum, text = '') => sum + utf8Bytes(text), 0);
  if (bytes > LEASE_EXTRAS_BYTES_MAX) return { kind: 'tooLarge', bytes };
  const spelledOut = changeOf(LEASE, { ...values, extras: extrasText(spelled), ownedByNode: false });
  return { kind: 'change', change: { nodeName, ...changeOf(LEASE, values), ...defined({ ownerUid }), spelledOut } };
}

/** Own members only: a client may send a name that every object inherits, such as `constructor`. */
const ownMember = (members: Readonly<Record<string, string>>, name: string): string | undefined =>
  Object.hasOwn(members, name) ? members[name] : undefined;

/**
 * A merge patch (RFC 7396; strategic merge means the same for these fields) that touches only spec fields with an
 * attribute of their own, as a beat by PATCH does. `needsRead` for any other member.
 */
export function leaseMergePatch(nodeName: string, patch: Readonly<Record<string, unknown>>): LeaseChangeResult {
  const set: Item = {};
  const remove: string[] = [];
  for (const [member, value] of Object.entries(patch)) {
    if (member === 'apiVersion' || member === 'kind') continue;
    if (member === 'metadata' && namesOnly(value)) continue;
    if (member !== 'spec' || typeof value !== 'object' || value === null) return { kind: 'needsRead' };
    for (const [field, entry] of Object.entries(value)) {
      const time = ownMember(TIME_FIELDS, field);
      const attribute = time ?? ownMember(SPEC_FIELDS, field);
      if (attribute === undefined) return { kind: 'needsRead' };
      const stored = field === 'holderIdentity' ? storedHolder(entry, nodeName) : entry;
      if (stored === null || stored === undefined) remove.push(attribute);
      else set[attribute] = time === undefined ? stored : microsOf(String(stored));
    }
  }
  // The stored JSON text has an unknown length: together with a long holder it could exceed the limit.
  const bytes = utf8Bytes(LEASE.holder.of(set) ?? '');
  if (bytes > LEASE_EXTRAS_BYTES_MAX / 4) return { kind: 'needsRead' };
  return { kind: 'change', change: { nodeName, set, remove, spelledOut: { set, remove } } };
}

/** The Lease of a row; undefined for a row without one. It shares no structure with the row. */
export function leaseOf(row: Item): Lease | undefined {
  if (!hasLease(row)) return undefined;
  const stored = readRow(LEASE, row);
  const name = String(row['sk']);
  const { holder = name, extras: text, usage, acquiredAtMicros, renewedAtMicros } = stored;
  const extras: Extras = text === undefined ? {} : JSON.parse(text);
  const { spec: rareSpec, annotations, ...metadata } = extras;
  const owners =
    stored.ownedByNode && hasDigest(row)
      ? { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid: DIGEST.uid.of(row) }] }
      : {};
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name,
      namespace: LEASE_NAMESPACE,
      uid: stored.uid,
      resourceVersion: String(stored.version),
      creationTimestamp: formatTime(stored.createdAtSeconds * 1_000),
      ...metadata,
      ...annotationsOf(annotations, usage),
      ...owners,
    },
    spec: {
      ...(holder === '' ? {} : { holderIdentity: holder }),
      ...defined({
        leaseDurationSeconds: stored.durationSeconds,
        acquireTime: acquiredAtMicros === undefined ? undefined : microTimeText(acquiredAtMicros),
        renewTime: renewedAtMicros === undefined ? undefined : microTimeText(renewedAtMicros),
        leaseTransitions: stored.transitions,
      }),
      ...rareSpec,
    },
  };
}

function annotationsOf(annotations: Readonly<Record<string, string>> | undefined, usage: string | undefined) {
  if (usage === undefined) return defined({ annotations });
  return { annotations: { [USAGE_ANNOTATION]: usage, ...annotations } };
}

/** A holder that equals the node's name is not stored, and an absent one is stored as ''. */
function storedHolder(holder: string | null | undefined, nodeName: string): string | undefined {
  if (holder === undefined || holder === null) return '';
  return holder === nodeName ? undefined : holder;
}

function isOwnNode(owner: OwnerReference, nodeName: string): boolean {
  return (
    Object.keys(owner).length === 4 && owner.apiVersion === 'v1' && owner.kind === 'Node' && owner.name === nodeName
  );
}

const isEmpty = (value: object | undefined): boolean => value === undefined || Object.keys(value).length === 0;

const extrasText = (extras: Extras): string | undefined => (isEmpty(extras) ? undefined : JSON.stringify(extras));

function namesOnly(metadata: unknown): boolean {
  if (typeof metadata !== 'object' || metadata === null) return false;
  return Object.keys(metadata).every((field) => ['name', 'namespace', 'uid', 'resourceVersion'].includes(field));
}

/** The annotations of the answer to a heartbeat of a node with this profile; none without known times. */
export function beatAnnotations(times: BeatTimes | undefined, profile: string | undefined): Record<string, string> {
  const known = profile !== undefined && times !== undefined && Object.hasOwn(times, profile);
  const [intervalSeconds, durationSeconds] = times?.[known ? profile : DEFAULT_PROFILE] ?? [];
  if (intervalSeconds === undefined || durationSeconds === undefined) return {};
  return {
    [BEAT_INTERVAL_ANNOTATION]: String(intervalSeconds),
    [LEASE_DURATION_ANNOTATION]: String(durationSeconds),
  };
}
