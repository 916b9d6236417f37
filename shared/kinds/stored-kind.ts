/** Descriptors of kinds that are stored, with the parts that most of them have in common. */

import { freshMetadata, inheritMetadata, nextGeneration, typed, withoutNulls } from '../kubernetes/normal-form.ts';
import type { Cause } from '../kubernetes/status.ts';
import type { Column, PrepareContext, ResourceDescriptor, Subresource, Verb } from './descriptor.ts';
import { preparesSpecAndStatus } from './spec-and-status.ts';
import type { KubeObject } from './types.ts';

const ALL_VERBS: readonly Verb[] = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

export const STATUS_PART: Subresource = { name: 'status', verbs: ['get', 'patch', 'update'] };
export const SCALE_PART: Subresource = {
  name: 'scale',
  group: 'autoscaling',
  version: 'v1',
  kind: 'Scale',
  verbs: ['get', 'patch', 'update'],
};

export interface KindNames {
  readonly group: string;
  /** Absent: v1. */
  readonly version?: string;
  readonly resource: string;
  readonly kind: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly scope: 'cluster' | 'namespaced';
}

type Prepare = Pick<ResourceDescriptor, 'hasGeneration' | 'prepareForCreate' | 'prepareForUpdate'>;

export interface StoredKind
  extends Partial<Pick<ResourceDescriptor, 'verbs' | 'createOnUpdate' | 'servedFrom' | 'creationWarning'>> {
  readonly subresources?: readonly Subresource[];
  readonly columns: readonly Column[];
  row(object: KubeObject, nowMs: number): unknown[];
  /** Fields that a field selector may name, besides metadata.name and metadata.namespace. */
  readonly selectableFields?: ResourceDescriptor['selectableFields'];
  /** Absent: true. */
  readonly unconditionalUpdate?: boolean;
  readonly prepare: Prepare;
  /** Empty when the object may be stored. */
  validate(object: KubeObject, old: KubeObject | undefined, subresource: string): Cause[];
}

export function storedKind(names: KindNames, kind: StoredKind): ResourceDescriptor {
  const { prepare, validate, selectableFields, subresources, verbs, unconditionalUpdate, createOnUpdate, ...rest } =
    kind;
  const { group, version = 'v1', resource, kind: name, shortNames = [], categories = [], scope } = names;
  const namespaced = scope === 'namespaced';
  return {
    group,
    version,
    resource,
    singular: name.toLowerCase(),
    kind: name,
    listKind: `${name}List`,
    shortNames,
    categories,
    namespaced,
    verbs: verbs ?? ALL_VERBS,
    subresources: subresources ?? [],
    shards: 1,
    selectableFields: {
      'metadata.name': (object) => object.metadata.name ?? '',
      ...(namespaced ? { 'metadata.namespace': (object: KubeObject) => object.metadata.namespace ?? '' } : {}),
      ...selectableFields,
    },
    unconditionalUpdate: unconditionalUpdate ?? true,
    createOnUpdate: createOnUpdate ?? false,
    ...rest,
    ...prepare,
    validate: (object, { old, subresource }) => validate(object, old, subresource),
  };
}

const keepsContent = (object: KubeObject): KubeObject => object;

/** How a kind without a status prepares its writes. `stored` adds the defaults, and drops what is not stored. */
export const preparesWhole = (
  { group, version = 'v1', kind }: KindNames,
  stored: (object: KubeObject, old: KubeObject | undefined) => KubeObject = keepsContent,
): Prepare => ({
  hasGeneration: false,
  prepareForCreate: (object) => {
    const metadata = freshMetadata(object.metadata);
    return typed(group, version, kind, stored({ ...withoutNulls(object), metadata }, undefined));
  },
  prepareForUpdate: (next, old) => {
    const metadata = inheritMetadata(next.metadata, old.metadata);
    return typed(group, version, kind, stored({ ...withoutNulls(next), metadata }, old));
  },
});

/** How a kind with a spec, a generation and no status prepares its writes. */
export const preparesSpec = (
  names: KindNames,
  storedSpec: (spec: KubeObject['spec']) => Record<string, unknown>,
): Prepare => {
  const whole = preparesWhole(names, (object) => ({ ...object, spec: storedSpec(object.spec) }));
  return {
    hasGeneration: true,
    prepareForCreate: (object, context: PrepareContext) => {
      const prepared = whole.prepareForCreate(object, context);
      return { ...prepared, metadata: { ...prepared.metadata, generation: 1 } };
    },
    prepareForUpdate: (next, old, context) => {
      const prepared = whole.prepareForUpdate(next, old, context);
      return { ...prepared, metadata: { ...prepared.metadata, generation: nextGeneration(prepared, old) } };
    },
  };
};

interface StatusOptions {
  /** Fields that the status always has. */
  readonly emptyStatus?: Readonly<Record<string, unknown>>;
  /** Absent: true. */
  readonly hasGeneration?: boolean;
  /** A write of the status does not change the labels. Absent: it may. */
  readonly keepsLabels?: boolean;
  /** A change of the annotations raises the generation. Absent: only one of the spec does. */
  readonly annotationsCount?: boolean;
}

/** How a kind with a spec and a status prepares its writes. */
export const preparesStatus = (
  { group, version = 'v1', kind }: KindNames,
  storedSpec: (spec: KubeObject['spec']) => Record<string, unknown>,
  { emptyStatus = {}, hasGeneration = true, keepsLabels = false, annotationsCount = false }: StatusOptions = {},
): Prepare =>
  preparesSpecAndStatus({
    hasGeneration,
    keepsLabels,
    annotationsCount,
    group,
    version,
    kind,
    storedSpec,
    storedStatus: (status = {}) => ({ ...emptyStatus, ...withoutNulls(status) }),
  });
