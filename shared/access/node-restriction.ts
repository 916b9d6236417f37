/**
 * Admission plugin NodeRestriction: a node may write its own Node, Lease and CSINode, and the status of its own pods. A
 * compromised machine therefore cannot change other machines. authorize.ts checks reads and other users.
 *
 * Runs on every write of a user in the group `system:nodes`, after the body is decoded and before it is stored. `patch`
 * counts as update. `message` follows `<resource> "<name>" is forbidden: ` in the response.
 *
 * A kubelet may set `node.kubernetes.io/exclude-disruption` on itself, because it may set all labels of that prefix.
 * Source: plugin/pkg/admission/noderestriction/admission.go, staging/src/k8s.io/kubelet/pkg/apis/well_known_labels.go.
 */

import { PLANNED_SILENCE_CONDITION } from '../fleet/nodes/planned-silence.ts';
import { FLAPPING_CONDITION } from '../fleet/silences/flapping.ts';
import { LEASE_NAMESPACE } from '../kinds/leases/resource.ts';
import { VOLUME_PROTECTION } from '../kinds/persistentvolumes/annotations.ts';
import { isOfferedVolume, localNodeOf } from '../kinds/persistentvolumes/local-volume.rule.ts';
import type { KubePersistentVolume } from '../kinds/types.ts';
import { nodeIdentity } from './authorize.ts';

export const MIRROR_POD_ANNOTATION = 'kubernetes.io/config.mirror';

type Json = Record<string, unknown>;

/** The spec fields of all kinds that these rules read. Their types are unchecked. */
interface RestrictedSpec {
  readonly nodeName?: unknown;
  readonly configSource?: unknown;
  readonly taints?: unknown;
  readonly serviceAccountName?: unknown;
  readonly serviceAccount?: unknown;
  readonly imagePullSecrets?: unknown;
  readonly resourceClaims?: unknown;
  readonly volumes?: unknown;
  readonly containers?: unknown;
  readonly initContainers?: unknown;
  readonly ephemeralContainers?: unknown;
}

interface RestrictedOwner {
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
  readonly name?: unknown;
  readonly uid?: unknown;
  readonly controller?: unknown;
  readonly blockOwnerDeletion?: unknown;
}

/** The parts of an object that these rules read. */
export interface RestrictedObject {
  readonly metadata?: {
    readonly name?: string;
    readonly uid?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly ownerReferences?: readonly RestrictedOwner[];
    readonly finalizers?: readonly string[];
  };
  readonly spec?: RestrictedSpec;
  readonly status?: { readonly resourceClaimStatuses?: unknown; readonly conditions?: unknown };
  readonly [field: string]: unknown;
}

export interface NodeRequest {
  readonly user: { readonly name: string; readonly groups: readonly string[] };
  readonly verb: 'create' | 'update' | 'patch' | 'delete';
  readonly apiGroup: string;
  /** Plural. */
  readonly resource: string;
  /** '' for the object itself. */
  readonly subresource: string;
  readonly namespace: string;
  /** Name in the path of the request; '' for a create. */
  readonly name: string;
  /** The object to store (create, update), or the body of a subresource. */
  readonly object?: RestrictedObject | undefined;
  /** The stored object (update, delete). For an eviction: its pod. */
  readonly stored?: RestrictedObject | undefined;
  /** For the creation of a mirror pod: uid of the stored Node of the user. Undefined when there is no Node. */
  readonly nodeUid?: string | undefined;
  /** For the creation of a volume: what the node was offered for the claim that the volume names, or why nothing. */
  readonly offered?: KubePersistentVolume | string | undefined;
}

export type NodeAuthorization =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'forbidden'; readonly message: string }
  /**
   * The owner of a mirror pod does not exist. The response is 404, as upstream: the node may register and try again.
   */
  | { readonly kind: 'nodeNotFound'; readonly nodeName: string };

const ALLOWED: NodeAuthorization = Object.freeze({ kind: 'allowed' });
const forbidden = (message: string): NodeAuthorization => ({ kind: 'forbidden', message });
const mayNotModify = (nodeName: string, what: string): NodeAuthorization =>
  forbidden(`node ${JSON.stringify(nodeName)} is not allowed to modify ${what}`);

type Operation = 'create' | 'update' | 'delete';

function operationOf({ verb, subresource, object, stored }: NodeRequest): Operation {
  switch (verb) {
    case 'create':
    case 'delete':
      return verb;
    case 'update':
    case 'patch':
      // An apply, or an update that may create, of an absent object is checked as a create.
      return subresource === '' && object !== undefined && stored === undefined ? 'create' : 'update';
  }
}

/** Whether the write of a node is allowed. Users who are not nodes are always allowed here. */
export function authorizeNode(request: NodeRequest): NodeAuthorization {
  const identity = nodeIdentity(request.user);
  if (identity.kind === 'notANode') return ALLOWED;
  const operation = operationOf(request);
  if (identity.kind === 'unknownNode') {
    return forbidden(`could not determine node from user ${JSON.stringify(request.user.name)}`);
  }
  const { nodeName } = identity;
  // Not in upstream. A finalizer of a node could prevent the deletion of an object and of its namespace.
  const isNewVolume = request.resource === 'persistentvolumes' && operation === 'create';
  if (operation !== 'delete' && !isNewVolume && changesFinalizers(request)) {
    return mayNotModify(nodeName, 'finalizers');
  }
  switch (`${request.apiGroup}/${request.resource}`) {
    case '/pods':
      return authorizePod(nodeName, operation, request);
    case '/nodes':
      return authorizeOwnNode(nodeName, operation, request);
    case '/persistentvolumes':
      return authorizeVolume(nodeName, operation, request);
    case 'coordination.k8s.io/leases':
      return authorizeLease(nodeName, request);
    case 'storage.k8s.io/csinodes':
      return ownName(request) === nodeName
        ? ALLOWED
        : forbidden(`can only access CSINode with the same name as the requesting node`);
    default:
      return ALLOWED;
  }
}

export interface TokenQuestion {
  readonly boundObjectRef?:
    | { readonly apiVersion?: string; readonly kind?: string; readonly name?: string; readonly uid?: string }
    | undefined;
  readonly audiences: readonly string[];
  /** The pod that the reference names. */
  readonly pod: RestrictedObject | undefined;
}

/**
 * Why a node may not request a token: it must be bound to a pod of the node, and a volume of the pod must need it.
 * undefined: it may.
 */
export function tokenRequestFault(nodeName: string, { boundObjectRef, audiences, pod }: TokenQuestion) {
  const refFault = podReferenceFault(boundObjectRef);
  if (refFault !== undefined) return refFault;
  const uid = boundObjectRef?.uid;
  if (uid !== pod?.metadata?.uid) {
    return `the UID in the bound object reference (${uid}) does not match the UID in record (${pod?.metadata?.uid}). The object might have been deleted and then recreated`;
  }
  if (boundTo(pod) !== nodeName) return 'node requested token bound to a pod scheduled on a different node';
  // A node makes up its mirror pods.
  if (pod?.metadata?.annotations?.[MIRROR_POD_ANNOTATION] !== undefined) return 'node requested token for a mirror pod';
  if (audiences.length > 1) return 'node may only request 0 or 1 audiences';
  const [audience = ''] = audiences;
  const isNeeded = listOf(pod?.spec?.volumes).some((volume) => projectedAudiences(volume).includes(audience));
  return isNeeded ? undefined : `audience ${JSON.stringify(audience)} not found in pod spec volume`;
}

/** The same for the reference alone, before its object is read. */
export function podReferenceFault(ref: TokenQuestion['boundObjectRef']): string | undefined {
  const { apiVersion, kind, name = '', uid = '' } = ref ?? {};
  if (apiVersion !== 'v1' || kind !== 'Pod' || name === '') return 'node requested token not bound to a pod';
  return uid === '' ? 'node requested token with a pod binding without a uid' : undefined;
}

/** Audiences of the service account tokens in a volume, '' for that of the API. */
function projectedAudiences({ projected }: Json): string[] {
  const sources = listOf((projected as Json | undefined)?.['sources']);
  const tokens = sources.map(({ serviceAccountToken }) => serviceAccountToken as Json | undefined);
  return tokens
    .filter((token) => token !== undefined)
    .map(({ audience }) => (typeof audience === 'string' ? audience : ''));
}

const changesFinalizers = ({ object, stored }: NodeRequest): boolean =>
  object !== undefined && !sameJson(stored?.metadata?.finalizers ?? [], object.metadata?.finalizers ?? []);

/** The name in the path of the request, or that of the object for a create without one. */
const ownName = (request: NodeRequest): string =>
  request.name !== '' || request.verb !== 'create' ? request.name : (request.object?.metadata?.name ?? '');

const boundTo = (pod: RestrictedObject | undefined): unknown => pod?.spec?.nodeName;

const claimStatusesOf = (pod: RestrictedObject | undefined): unknown => pod?.status?.resourceClaimStatuses ?? [];

function authorizePod(nodeName: string, operation: Operation, request: NodeRequest): NodeAuthorization {
  const node = JSON.stringify(nodeName);
  switch (request.subresource) {
    case '':
      if (operation === 'create') return authorizeMirrorPod(nodeName, request);
      if (operation === 'delete') {
        // Without a stored pod there is nothing to protect: the response is 404.
        if (request.stored === undefined || boundTo(request.stored) === nodeName) return ALLOWED;
        return forbidden(`node ${node} can only delete pods with spec.nodeName set to itself`);
      }
      return forbidden(`node ${node} can only create and delete mirror pods and delete its own`);
    case 'status':
      if (operation !== 'update') return forbidden(`node ${node} can only update the status of pods`);
      if (request.stored === undefined) return ALLOWED;
      if (boundTo(request.stored) !== nodeName) {
        return forbidden(`node ${node} can only update pod status for pods with spec.nodeName set to itself`);
      }
      if (changedLabelKeys(request.stored.metadata?.labels, request.object?.metadata?.labels).length > 0) {
        return forbidden(`node ${node} cannot update labels through pod status`);
      }
      if (!sameJson(claimStatusesOf(request.stored), claimStatusesOf(request.object))) {
        return forbidden(`node ${node} cannot update resource claim statuses`);
      }
      return ALLOWED;
    case 'eviction': {
      if (operation !== 'create') return forbidden(`node ${node} can only create evictions`);
      if (request.stored === undefined || boundTo(request.stored) === nodeName) return ALLOWED;
      return forbidden(`node ${node} can only evict pods with spec.nodeName set to itself`);
    }
    default:
      return forbidden(`node ${node} may not use pod subresource ${JSON.stringify(request.subresource)}`);
  }
}

function authorizeMirrorPod(nodeName: string, request: NodeRequest): NodeAuthorization {
  const node = JSON.stringify(nodeName);
  const pod = request.object;
  if (pod?.metadata?.annotations?.[MIRROR_POD_ANNOTATION] === undefined) {
    return forbidden(`node ${node} can only create mirror pods: annotation ${MIRROR_POD_ANNOTATION} is missing`);
  }
  if (boundTo(pod) !== nodeName) {
    return forbidden(`node ${node} can only create pods with spec.nodeName set to itself`);
  }
  const owners = pod.metadata.ownerReferences ?? [];
  const [owner] = owners;
  if (owner === undefined || owners.length !== 1) {
    return forbidden(`node ${node} can only create pods with exactly one owner: itself`);
  }
  if (owner.apiVersion !== 'v1' || owner.kind !== 'Node' || owner.name !== nodeName) {
    return forbidden(`node ${node} can only create pods with an owner reference set to itself`);
  }
  if (owner.controller !== true) return forbidden(`node ${node}: the owner reference must have controller set to true`);
  if (owner.blockOwnerDeletion === true) {
    return forbidden(`node ${node} must not set blockOwnerDeletion on an owner reference`);
  }
  const { nodeUid } = request;
  if (nodeUid === undefined) return { kind: 'nodeNotFound', nodeName };
  if (owner.uid !== nodeUid) {
    return forbidden(
      `node ${node}: the owner reference has uid ${JSON.stringify(owner.uid)}, the node has ${JSON.stringify(nodeUid)}`,
    );
  }
  const reference = apiReferenceIn(pod.spec ?? {});
  return reference === undefined ? ALLOWED : forbidden(`node ${node} can not create pods that reference ${reference}`);
}

/** Fields that refer to another API object, with its kind. */
const REFERENCES: Readonly<Record<string, string>> = {
  secret: 'secrets',
  secretRef: 'secrets',
  secretKeyRef: 'secrets',
  secretName: 'secrets',
  nodePublishSecretRef: 'secrets',
  configMap: 'configmaps',
  configMapRef: 'configmaps',
  configMapKeyRef: 'configmaps',
  persistentVolumeClaim: 'persistentvolumeclaims',
  ephemeral: 'persistentvolumeclaims',
  clusterTrustBundle: 'clustertrustbundles',
  serviceAccountToken: 'service accounts',
};
/** Fields with a free-form map as value. The keys of the map are not API fields. */
const FREE_FORM = new Set(['volumeAttributes', 'options']);
const WALK_DEPTH_MAX = 12;

/** The kind of the first reference in a value, undefined if there is none. */
function referenceWithin(value: unknown, depth: number): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth > WALK_DEPTH_MAX) return 'objects nested too deeply';
  for (const [field, inner] of Object.entries(value)) {
    if (FREE_FORM.has(field)) continue;
    const kind = Array.isArray(value) || inner === undefined || inner === null ? undefined : REFERENCES[field];
    const found = kind ?? referenceWithin(inner, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

const hasText = (value: unknown): boolean => typeof value === 'string' && value !== '';
const listOf = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : []);

/** The kind of API object that a pod's spec refers to; undefined if it refers to none. */
function apiReferenceIn(spec: RestrictedSpec): string | undefined {
  if (hasText(spec.serviceAccountName) || hasText(spec.serviceAccount)) return 'service accounts';
  if (listOf(spec.imagePullSecrets).length > 0) return 'secrets';
  if (listOf(spec.resourceClaims).length > 0) return 'resource claims';
  const containers = [spec.initContainers, spec.containers, spec.ephemeralContainers].flatMap(listOf);
  const referringFields = [spec.volumes, ...containers.flatMap(({ env, envFrom }) => [env, envFrom])];
  return referringFields.map((value) => referenceWithin(value, 0)).find((kind) => kind !== undefined);
}

/** Not in upstream. The agent makes the volumes of the local provisioner, each for a claim that selected its node. */
function authorizeVolume(nodeName: string, operation: Operation, request: NodeRequest): NodeAuthorization {
  const node = JSON.stringify(nodeName);
  const { object, stored, offered = 'the volume names no claim' } = request;
  if (operation === 'update') return forbidden(`node ${node} can only create and delete volumes`);
  if (operation === 'delete') {
    if (stored === undefined) return ALLOWED;
    const volume = stored as KubePersistentVolume;
    const isFree = volume.status?.phase !== 'Bound';
    if (localNodeOf(volume) === nodeName && isFree) return ALLOWED;
    return forbidden(`node ${node} can only delete volumes on itself that are not bound`);
  }
  if (typeof offered === 'string') return forbidden(`node ${node} can not create this volume: ${offered}`);
  const [finalizer, ...others] = object?.metadata?.finalizers ?? [];
  const isOffered = isOfferedVolume({ metadata: {}, ...object } as KubePersistentVolume, offered);
  if (isOffered && others.length === 0 && finalizer === VOLUME_PROTECTION) return ALLOWED;
  return forbidden(`node ${node} can only create the volume that it was asked for`);
}

function authorizeOwnNode(nodeName: string, operation: Operation, request: NodeRequest): NodeAuthorization {
  const node = JSON.stringify(nodeName);
  const name = ownName(request);
  if (name !== nodeName || (operation === 'create' && (request.object?.metadata?.name ?? name) !== nodeName)) {
    return mayNotModify(nodeName, `node ${JSON.stringify(name)}`);
  }
  if (request.subresource !== '' && request.subresource !== 'status') {
    return forbidden(`node ${node} may not use node subresource ${JSON.stringify(request.subresource)}`);
  }
  if (operation !== 'delete' && (operation === 'create' || request.stored !== undefined)) {
    const conditions = changedServerConditions(request);
    if (conditions.length > 0) {
      return mayNotModify(nodeName, `the following conditions: ${conditions.join(', ')}`);
    }
  }
  if (operation === 'create') {
    if (present(request.object?.spec?.configSource)) {
      return forbidden(`node ${node} is not allowed to create itself with a spec.configSource`);
    }
    const labels = changedLabelKeys({}, request.object?.metadata?.labels).filter(isForbiddenNodeLabel);
    return labels.length === 0
      ? ALLOWED
      : forbidden(`node ${node} is not allowed to set the following labels: ${labels.join(', ')}`);
  }
  if (operation === 'update') {
    const { stored, object } = request;
    if (stored === undefined) return ALLOWED;
    const source = object?.spec?.configSource;
    if (present(source) && !sameJson(source, stored.spec?.configSource)) {
      return forbidden(`node ${node} is not allowed to set spec.configSource`);
    }
    if (!sameJson(taintsWithoutTimes(stored), taintsWithoutTimes(object))) {
      return mayNotModify(nodeName, 'taints');
    }
    const labels = changedLabelKeys(stored.metadata?.labels, object?.metadata?.labels).filter(isForbiddenNodeLabel);
    if (labels.length > 0) {
      return mayNotModify(nodeName, `labels: ${labels.join(', ')}`);
    }
    if (!sameJson(stored.metadata?.ownerReferences ?? [], object?.metadata?.ownerReferences ?? [])) {
      return mayNotModify(nodeName, 'ownerReferences');
    }
  }
  return ALLOWED;
}

/** Conditions that our controllers set and people read. A machine sends them back unchanged, or not at all. */
const SERVER_CONDITIONS = [FLAPPING_CONDITION, PLANNED_SILENCE_CONDITION];

function changedServerConditions({ stored, object }: NodeRequest): string[] {
  const ofType = (node: RestrictedObject | undefined, wanted: string): Json[] =>
    listOf(node?.status?.conditions)
      .filter(({ type }) => type === wanted)
      // A decoded body has null for each absent time, a condition that a controller wrote has none.
      .map((condition) => Object.fromEntries(Object.entries(condition).filter(([, value]) => present(value))));
  return SERVER_CONDITIONS.filter((type) => !sameJson(ofType(stored, type), ofType(object, type)));
}

/** Taints of a Node without timeAdded, because the server sets it in every write. */
const taintsWithoutTimes = (node: RestrictedObject | undefined): Json[] =>
  listOf(node?.spec?.taints).map(({ timeAdded: _timeAdded, ...taint }) => taint);

const present = (value: unknown): boolean => value !== undefined && value !== null;

const ALLOWED_NODE_LABELS: ReadonlySet<string> = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'beta.kubernetes.io/instance-type',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'node.kubernetes.io/instance-type',
]);

const within = (namespace: string, domain: string): boolean => namespace === domain || namespace.endsWith(`.${domain}`);

/** Whether a node may not set, change or remove this label on itself. */
export function isForbiddenNodeLabel(key: string): boolean {
  const slash = key.indexOf('/');
  const namespace = slash < 0 ? '' : key.slice(0, slash);
  if (within(namespace, 'node-restriction.kubernetes.io')) return true;
  if (!within(namespace, 'kubernetes.io') && !within(namespace, 'k8s.io')) return false;
  if (ALLOWED_NODE_LABELS.has(key)) return false;
  return !within(namespace, 'kubelet.kubernetes.io') && !within(namespace, 'node.kubernetes.io');
}

/** Sorted keys of the added, removed and changed labels. */
export function changedLabelKeys(
  before: Readonly<Record<string, string>> | undefined,
  after: Readonly<Record<string, string>> | undefined,
): string[] {
  const [old, fresh] = [before ?? {}, after ?? {}];
  return [...new Set([...Object.keys(old), ...Object.keys(fresh)])]
    .filter((key) => Object.hasOwn(old, key) !== Object.hasOwn(fresh, key) || old[key] !== fresh[key])
    .toSorted();
}

function authorizeLease(nodeName: string, request: NodeRequest): NodeAuthorization {
  if (request.namespace !== LEASE_NAMESPACE) {
    return forbidden(`can only access leases in the namespace ${JSON.stringify(LEASE_NAMESPACE)}`);
  }
  const named = request.object?.metadata?.name;
  if (ownName(request) !== nodeName || (request.verb === 'create' && named !== undefined && named !== nodeName)) {
    return forbidden('can only access node lease with the same name as the requesting node');
  }
  return ALLOWED;
}

/** Structural equality of JSON values; the order of an object's fields does not matter. */
function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [definedFields(a), definedFields(b)];
  return (
    left.length === right.length &&
    left.every(([field, value]) => Object.hasOwn(b, field) && sameJson(value, (b as Json)[field]))
  );
}

const definedFields = (value: object): [string, unknown][] =>
  Object.entries(value).filter(([, inner]) => inner !== undefined);
