import type { UserInfo } from '../access/user-info.ts';
import type { StructSchema } from '../kubernetes/schema.ts';
import type { Cause } from '../kubernetes/status.ts';
import type { StoredResource, Verb } from './stored-resource.ts';
import type { KubeLimitRange, KubeObject, KubeRuntimeClass, KubeServiceAccount, PreemptionPolicy } from './types.ts';

/** A column of a Table. Priority 0 is always shown, 1 only with `-o wide`. */
export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  /** `name` on the first column marks the cell that names the object; kubectl reads it. */
  readonly format: string;
  readonly description: string;
  readonly priority: number;
}

export interface Subresource {
  readonly name: string;
  /** Kind, group and version of the body, if they differ from those of the resource. */
  readonly kind?: string;
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly Verb[];
  /** True: its writes change what the object uses. LimitRanges and quotas bound them. */
  readonly changesUse?: true;
  /** The only fields that an apply owns: names in managedFields, a pattern for each level. Absent: all. */
  readonly appliedFields?: readonly RegExp[];
}

/** The priority of a pod, as resolved by admission (shared/kinds/pods/pod-admission.ts, resolvePriority). */
export interface ResolvedPriority {
  readonly priority: number;
  readonly priorityClassName?: string;
  readonly preemptionPolicy: PreemptionPolicy;
}

export interface PrepareContext {
  /** Server time. */
  readonly nowMs: number;
  /** Who writes. Absent: the system itself. */
  readonly user?: UserInfo;
  /** For pods without a toleration of not-ready or of unreachable; policy podEvictionTimeoutSeconds. */
  readonly defaultTolerationSeconds?: number;
  /** Only for pods. Absent: priority 0. */
  readonly priority?: ResolvedPriority;
  /** Only for pods: of the namespace. Absent: none. */
  readonly limitRanges?: readonly KubeLimitRange[];
  /** Only for pods: the class that the pod names. Absent: it names none. */
  readonly runtimeClass?: KubeRuntimeClass;
  /** Only for pods: the ServiceAccount that the pod runs as. Absent: the account of the pod stays as it is. */
  readonly account?: KubeServiceAccount;
  /** Only for pods: true adds defaults alone. What admission adds has no owner, as upstream. */
  readonly defaultsOnly?: true;
  /** Only for PersistentVolumeClaims: name of the class of those without one. Absent: there is none. */
  readonly defaultClassName?: string;
}

export interface PrepareUpdateContext extends PrepareContext {
  /** '' for the object itself; otherwise the written subresource. */
  readonly subresource: string;
}

export interface ValidateContext {
  readonly operation: 'create' | 'update';
  /** '' for the object itself; otherwise the written subresource. */
  readonly subresource: string;
  /** The stored object; always set on update. */
  readonly old?: KubeObject;
  /** API group of the request. It differs from that of the descriptor for a resource with `servedFrom`. */
  readonly group?: string;
}

/**
 * Everything that the API needs to serve one kind. All functions are pure. A write has the steps of an API server:
 * decode the body, prepareForCreate or prepareForUpdate, then validate. The caller sets the system fields of the
 * metadata (uid, creationTimestamp, resourceVersion, deletionTimestamp, managedFields); generation is prepared here.
 */
export interface ResourceDescriptor extends StoredResource {
  readonly singular: string;
  readonly listKind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly subresources: readonly Subresource[];
  readonly columns: readonly Column[];
  /** One cell per column, in order. Ages are relative to nowMs. */
  row(object: KubeObject, nowMs: number): unknown[];
  /** Order of the rows of one answer. Absent: that of the names. */
  compareRows?(one: KubeObject, other: KubeObject): number;
  /** A PUT without resourceVersion overwrites; otherwise it is 422. */
  readonly unconditionalUpdate: boolean;
  /** A PUT of an absent object creates it; otherwise it is 404. */
  readonly createOnUpdate: boolean;
  /** metadata.generation is kept: 1 on creation, one more when the spec changes. */
  readonly hasGeneration: boolean;
  /** Applies defaults and drops what a creation may not set. Returns a new object; throws nothing. */
  prepareForCreate(object: KubeObject, context: PrepareContext): KubeObject;
  /** Keeps what this (sub)resource may not change, applies defaults. Returns a new object; throws nothing. */
  prepareForUpdate(next: KubeObject, old: KubeObject, context: PrepareUpdateContext): KubeObject;
  /** Empty when the object may be stored. Call after preparing. */
  validate(object: KubeObject, context: ValidateContext): Cause[];
  /** Set for a resource that is stored in another version (events.k8s.io/v1 of v1 events). */
  readonly servedFrom?: {
    /** The descriptor under which objects are stored, selected and watched. */
    readonly group: string;
    readonly resource: string;
    toServed(stored: KubeObject): KubeObject;
    toStored(served: KubeObject): KubeObject;
  };
  /** The largest body of a write. Bytes. Absent: BODY_BYTES_MAX. */
  readonly bodyBytesMax?: number;
  /** Set for a kind that a CustomResourceDefinition adds. */
  readonly custom?: CustomKind;
}

/** What a definition says of its kind, in one version. */
export interface CustomKind {
  /** `<plural>.<group>`: the name of the definition, and of the kind in the store. */
  readonly definition: string;
  readonly definitionUid: string;
  /** resourceVersion of the definition. */
  readonly definitionVersion: number;
  readonly definitionGeneration: number | undefined;
  /** The definition is being deleted: no object is created. */
  readonly isTerminating: boolean;
  /** The version in which objects are stored. */
  readonly storageVersion: string;
  /** The versions that are served. */
  readonly versions: readonly string[];
  readonly schema: StructSchema;
  /** The stored object in this version: other apiVersion, pruned, with defaults. */
  toServed(stored: KubeObject): KubeObject;
  /** JSON paths such as `.spec.replicas`. Absent: no scale. */
  readonly scale?: {
    readonly specReplicasPath: string;
    readonly statusReplicasPath: string;
    readonly labelSelectorPath?: string;
  };
  /** Sent with every answer. Absent: the version is not deprecated. */
  readonly deprecation?: () => string;
}
