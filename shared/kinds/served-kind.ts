/**
 * The parts that most kinds have in common: how objects are prepared before they are validated and stored (defaults,
 * and what a write may not change), and the descriptor that serves them.
 */

import { freshMetadata, inheritMetadata, nextGeneration, typed, withoutNulls } from '../kubernetes/normal-form.ts';
import type { Cause } from '../kubernetes/status.ts';
import type { Column, PrepareContext, ResourceDescriptor, Subresource } from './descriptor.ts';
import type { StoredResource } from './stored-resource.ts';
import type { KubeObject, ObjectMeta } from './types.ts';

/** The part of a descriptor that prepares writes. A controller that creates objects uses it alone. */
export type Prepare = Pick<ResourceDescriptor, 'hasGeneration' | 'prepareForCreate' | 'prepareForUpdate'>;

type Names = Pick<StoredResource, 'group' | 'version' | 'kind'>;

const keepsContent = (object: KubeObject): KubeObject => object;

/** How a kind without a status prepares its writes. `stored` adds the defaults, and drops what is not stored. */
export const preparesWhole = (
  { group, version, kind }: Names,
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
  names: Names,
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
  names: Names,
  storedSpec: (spec: KubeObject['spec']) => Record<string, unknown>,
  { emptyStatus = {}, ...options }: StatusOptions = {},
): Prepare =>
  preparesSpecAndStatus(names, {
    ...options,
    storedSpec,
    storedStatus: (status = {}) => ({ ...emptyStatus, ...withoutNulls(status) }),
  });

/** The stored form of a kind with a status subresource. */
interface SpecAndStatus extends Omit<StatusOptions, 'emptyStatus'> {
  storedSpec(spec: KubeObject['spec']): Record<string, unknown>;
  /** `undefined`: the status of a new object. */
  storedStatus(status: KubeObject['status']): Record<string, unknown>;
}

/**
 * How such a kind prepares its writes. A write of the object changes the spec and keeps the status; a write of the
 * status keeps the spec. A creation ignores the status that was sent.
 */
export const preparesSpecAndStatus = (
  { group, version, kind }: Names,
  { storedSpec, storedStatus, hasGeneration = true, keepsLabels = false, annotationsCount = false }: SpecAndStatus,
): Prepare => ({
  hasGeneration,
  prepareForCreate: (object) =>
    typed(group, version, kind, {
      ...object,
      metadata: { ...freshMetadata(object.metadata), ...(hasGeneration ? { generation: 1 } : {}) },
      spec: storedSpec(object.spec),
      status: storedStatus(undefined),
    }),
  prepareForUpdate(next, old, { subresource }) {
    const isStatus = subresource === 'status';
    const inherited = inheritMetadata(next.metadata, old.metadata);
    const prepared = typed(group, version, kind, {
      ...next,
      metadata: isStatus && keepsLabels ? withLabelsOf(old, inherited) : inherited,
      spec: isStatus ? (old.spec ?? {}) : storedSpec(next.spec),
      status: isStatus ? storedStatus(next.status) : (old.status ?? storedStatus(undefined)),
    });
    if (!hasGeneration) return prepared;
    const countsAnnotations = annotationsCount && !isStatus;
    const generation = nextGeneration(prepared, old, { countsAnnotations });
    return { ...prepared, metadata: { ...prepared.metadata, generation } };
  },
});

function withLabelsOf(old: KubeObject, { labels: _labels, ...metadata }: ObjectMeta): ObjectMeta {
  const { labels } = old.metadata;
  return labels === undefined ? metadata : { ...metadata, labels };
}

export const STATUS_PART: Subresource = { name: 'status', verbs: ['get', 'patch', 'update'] };
export const SCALE_PART: Subresource = {
  name: 'scale',
  group: 'autoscaling',
  version: 'v1',
  kind: 'Scale',
  verbs: ['get', 'patch', 'update'],
};

export interface ServedKind
  extends Partial<Pick<ResourceDescriptor, 'shortNames' | 'categories' | 'createOnUpdate' | 'servedFrom'>> {
  readonly subresources?: readonly Subresource[];
  readonly columns: readonly Column[];
  row(object: KubeObject, nowMs: number): unknown[];
  /** Absent: true. */
  readonly unconditionalUpdate?: boolean;
  readonly prepare: Prepare;
  /** Empty when the object may be stored. */
  validate(object: KubeObject, old: KubeObject | undefined, subresource: string): Cause[];
}

export function servedKind(stored: StoredResource, kind: ServedKind): ResourceDescriptor {
  const { prepare, validate, shortNames, categories, subresources, unconditionalUpdate, createOnUpdate, ...rest } =
    kind;
  return {
    ...stored,
    singular: stored.kind.toLowerCase(),
    listKind: `${stored.kind}List`,
    shortNames: shortNames ?? [],
    categories: categories ?? [],
    subresources: subresources ?? [],
    unconditionalUpdate: unconditionalUpdate ?? true,
    createOnUpdate: createOnUpdate ?? false,
    ...rest,
    ...prepare,
    validate: (object, { old, subresource }) => validate(object, old, subresource),
  };
}
