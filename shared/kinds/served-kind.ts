/** Descriptors of kinds that are served, with the parts that most of them have in common. */

import type { Cause } from '../kubernetes/status.ts';
import type { Column, ResourceDescriptor, Subresource } from './descriptor.ts';
import type { Prepare } from './prepare.ts';
import type { StoredResource } from './stored-resource.ts';
import type { KubeObject } from './types.ts';

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
