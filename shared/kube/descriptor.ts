import type { Cause } from './status.ts';
import type { KubeObject, PreemptionPolicy } from './types.ts';

export type Verb = 'create' | 'delete' | 'deletecollection' | 'get' | 'list' | 'patch' | 'update' | 'watch';

/** A column of a Table. Priority 0 is always shown, 1 only with `-o wide`. */
export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date';
  /** `name` on the first column tells kubectl which cell names the object. */
  readonly format: string;
  readonly description: string;
  readonly priority: number;
}

export interface Subresource {
  readonly name: string;
  /** Kind, group and version of what is sent, where it is not the resource's own. */
  readonly kind?: string;
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly Verb[];
}

/** What a pod's priority was resolved to by admission (shared/api/kinds/pods.ts, resolvePriority). */
export interface ResolvedPriority {
  readonly priority: number;
  readonly priorityClassName?: string;
  readonly preemptionPolicy: PreemptionPolicy;
}

export interface PrepareContext {
  /** Server time. */
  readonly nowMs: number;
  /** Given to pods that bring no toleration of not-ready or of unreachable; policy podEvictionTimeoutSeconds. */
  readonly defaultTolerationSeconds?: number;
  /** Only for pods. Absent: priority 0. */
  readonly priority?: ResolvedPriority;
}

export interface PrepareUpdateContext extends PrepareContext {
  /** '' is the object itself; otherwise the subresource written to. */
  readonly subresource: string;
}

export interface ValidateContext {
  readonly operation: 'create' | 'update';
  /** '' is the object itself; otherwise the subresource written to. */
  readonly subresource: string;
  /** The stored object; always there on update. */
  readonly old?: KubeObject;
}

/**
 * All that the API needs to know about one kind. Everything here is pure. The order of a write is that of an API
 * server: read the body, prepareForCreate or prepareForUpdate, then validate; system fields of the metadata (uid,
 * creationTimestamp, resourceVersion, deletionTimestamp, managedFields) are the caller's, generation is prepared here.
 */
export interface ResourceDescriptor {
  /** '' is the core group. */
  readonly group: string;
  readonly version: string;
  /** Plural, lower case: the name in paths and in the store. */
  readonly resource: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly verbs: readonly Verb[];
  readonly subresources: readonly Subresource[];
  /** Store shards. Changing it moves keys. */
  readonly shards: number;
  readonly columns: readonly Column[];
  /** One cell a column, in order. Ages are counted from nowMs. */
  row(object: KubeObject, nowMs: number): unknown[];
  /** Fields a field selector may name, each with how it reads from an object. */
  readonly selectableFields: Readonly<Record<string, (object: KubeObject) => string>>;
  /** A PUT without resourceVersion overwrites; otherwise it is 422. */
  readonly unconditionalUpdate: boolean;
  /** A PUT of an absent object creates it; otherwise it is 404. */
  readonly createOnUpdate: boolean;
  /** metadata.generation is kept: 1 on creation, one more when the spec changes. */
  readonly hasGeneration: boolean;
  /** Defaults, and what the API drops on creation. Returns a new object; throws nothing. */
  prepareForCreate(object: KubeObject, context: PrepareContext): KubeObject;
  /** Keeps what this (sub)resource may not change, applies defaults. Returns a new object; throws nothing. */
  prepareForUpdate(next: KubeObject, old: KubeObject, context: PrepareUpdateContext): KubeObject;
  /** Empty when the object may be stored. Call after preparing. */
  validate(object: KubeObject, context: ValidateContext): Cause[];
  /** Set when this is another face of a resource that is stored in another version (events.k8s.io/v1 of v1 events). */
  readonly servedFrom?: {
    /** The descriptor under which objects are stored, selected and watched. */
    readonly group: string;
    readonly resource: string;
    toServed(stored: KubeObject): KubeObject;
    toStored(served: KubeObject): KubeObject;
  };
}
