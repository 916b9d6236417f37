import type { KubeObject } from './types.ts';

export type Verb = 'create' | 'delete' | 'deletecollection' | 'get' | 'list' | 'patch' | 'update' | 'watch';

export const ALL_VERBS: readonly Verb[] = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
];

/** One kind as it is stored: what the store and every controller know about it. descriptor.ts adds what serves it. */
export interface StoredResource {
  /** '' is the core group. */
  readonly group: string;
  /** The version in which its objects are stored. */
  readonly version: string;
  /** Plural, lower case: the name in paths and in the store. */
  readonly resource: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly Verb[];
  /** Store shards. Changing it moves keys. */
  readonly shards: number;
  /** Fields that a field selector may name, each with its value in an object. */
  readonly selectableFields: Readonly<Record<string, (object: KubeObject) => string>>;
  /** Other apiVersions that serve the same objects. Absent: none. */
  readonly otherApiVersions?: readonly string[];
  /** An object expires this long after its last write. Absent: never. */
  readonly expiresAfterSeconds?: number;
}

interface ResourceOptions
  extends Pick<StoredResource, 'group' | 'resource' | 'kind' | 'otherApiVersions' | 'expiresAfterSeconds'> {
  readonly scope: 'cluster' | 'namespaced';
  /** Absent: v1. */
  readonly version?: string;
  /** Absent: all of them. */
  readonly verbs?: readonly Verb[];
  /** Absent: 1. */
  readonly shards?: number;
  /** Besides metadata.name and metadata.namespace. */
  readonly selectableFields?: StoredResource['selectableFields'];
}

export const storedResource = ({
  scope,
  version = 'v1',
  verbs = ALL_VERBS,
  shards = 1,
  selectableFields,
  ...names
}: ResourceOptions): StoredResource => ({
  ...names,
  version,
  namespaced: scope === 'namespaced',
  verbs,
  shards,
  selectableFields: {
    'metadata.name': ({ metadata }) => metadata.name ?? '',
    ...(scope === 'namespaced' ? { 'metadata.namespace': ({ metadata }: KubeObject) => metadata.namespace ?? '' } : {}),
    ...selectableFields,
  },
});

/**
 * When an object that is written at this time expires, in epoch seconds. Counted from the write, as upstream: the times
 * in an object come from a machine, and its clock may be wrong by years.
 */
export const expirySeconds = ({ expiresAfterSeconds }: StoredResource, writtenAtMs: number): number | undefined =>
  expiresAfterSeconds === undefined ? undefined : Math.ceil(writtenAtMs / 1_000) + expiresAfterSeconds;

// Objects that every namespace has, and that are created again when they are deleted.

/** The ServiceAccount of pods that name none. */
export const DEFAULT_ACCOUNT = 'default';
/** The ConfigMap with the certificates that clients in pods trust. */
export const ROOT_CA = 'kube-root-ca.crt';

/** @param resource plural name */
export const isNamespaceContent = (resource: string, name: string): boolean =>
  (resource === 'serviceaccounts' && name === DEFAULT_ACCOUNT) || (resource === 'configmaps' && name === ROOT_CA);
