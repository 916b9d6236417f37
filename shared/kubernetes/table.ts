/**
 * Objects as a meta.k8s.io Table, the form in which kubectl get wants its answers, and as PartialObjectMetadata.
 */
import { defined } from '../defined.ts';
import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import type { KubeObject, ObjectMeta } from '../kinds/types.ts';
import type { MetaVersion } from './accept.ts';

export { type AnswerForm, answerForm } from './accept.ts';

/** What a row carries besides its cells: query parameter includeObject. */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

/** undefined: not one of the three, which is a 400. */
export function parseIncludeObject(text: string | null | undefined): IncludeObject | undefined {
  if (text === undefined || text === null || text === '') return 'Metadata';
  return text === 'None' || text === 'Metadata' || text === 'Object' ? text : undefined;
}

/** Metadata of a list answer. */
export interface ListMeta {
  readonly resourceVersion?: string;
  /** Present when there is more: the token to go on with. */
  readonly continue?: string;
  readonly remainingItemCount?: number;
}

export interface TableRow {
  readonly cells: readonly unknown[];
  readonly object?: unknown;
}

export interface Table {
  readonly kind: 'Table';
  readonly apiVersion: string;
  readonly metadata: ListMeta;
  readonly columnDefinitions: readonly unknown[] | null;
  readonly rows: readonly TableRow[];
}

// The metadata of a row omits managedFields: no client reads them there, and they are most of the bytes.
function rowMetadata(meta: ObjectMeta): ObjectMeta {
  const { managedFields: _managedFields, ...rest } = meta;
  return rest;
}

export const partialMetadata = (object: KubeObject, version: MetaVersion = 'v1'): KubeObject => ({
  kind: 'PartialObjectMetadata',
  apiVersion: `meta.k8s.io/${version}`,
  metadata: object.metadata,
});

export const partialMetadataList = (
  objects: readonly KubeObject[],
  metadata: ListMeta,
  version: MetaVersion = 'v1',
): Record<string, unknown> => ({
  kind: 'PartialObjectMetadataList',
  apiVersion: `meta.k8s.io/${version}`,
  metadata,
  items: objects.map((object) => partialMetadata(object, version)),
});

export interface TableOptions {
  readonly nowMs: number;
  readonly includeObject?: IncludeObject;
  readonly version?: MetaVersion;
  readonly metadata?: ListMeta;
  /** Watches define the columns in their first event only. */
  readonly withoutColumns?: boolean;
}

function rowObject(
  descriptor: ResourceDescriptor,
  object: KubeObject,
  include: IncludeObject,
  version: MetaVersion,
): unknown {
  if (include === 'None') return undefined;
  if (include === 'Object') return descriptor.servedFrom?.toServed(object) ?? object;
  return {
    kind: 'PartialObjectMetadata',
    apiVersion: `meta.k8s.io/${version}`,
    metadata: rowMetadata(object.metadata),
  };
}

// The table of a single object has the resourceVersion of that object: a watch continues from there.
function soleVersion(objects: readonly KubeObject[]): ListMeta {
  const resourceVersion = objects.length === 1 ? objects[0]?.metadata.resourceVersion : undefined;
  return resourceVersion === undefined ? {} : { resourceVersion };
}

/** A table of objects as they are stored. */
export function buildTable(
  descriptor: ResourceDescriptor,
  objects: readonly KubeObject[],
  options: TableOptions,
): Table {
  const version = options.version ?? 'v1';
  const include = options.includeObject ?? 'Metadata';
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${version}`,
    metadata: options.metadata ?? soleVersion(objects),
    columnDefinitions: options.withoutColumns === true ? null : descriptor.columns,
    rows: objects.map((object) => {
      const shown = rowObject(descriptor, object, include, version);
      return { cells: descriptor.row(object, options.nowMs), ...defined({ object: shown }) };
    }),
  };
}
