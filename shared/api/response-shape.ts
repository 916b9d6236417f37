/**
 * The form of a response body: the object, a Table, or only the metadata. The `Accept` header and the query parameter
 * `includeObject` choose it. Kubernetes: "Kubernetes API Concepts", receiving resources as Tables.
 */
import { defined } from '../defined.ts';
import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import type { KubeObject } from '../kinds/types.ts';
import { type MediaRange, mediaRanges } from '../kubernetes/accept.ts';
import * as status from '../kubernetes/status.ts';
import {
  type AnswerForm,
  answerForm,
  buildTable,
  type IncludeObject,
  parseIncludeObject,
  partialMetadata,
  partialMetadataList,
} from '../kubernetes/table.ts';
import type { ListedPage } from './list-objects.ts';

export interface Shape {
  readonly form: AnswerForm;
  /** How much of each object a row of a Table repeats. */
  readonly includeObject: IncludeObject;
}

/** What clients may accept. The answer is JSON in each case: it is YAML too, and Go clients read the Content-Type. */
const ANSWERED = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf'];
const WILDCARDS = ['*/*', 'application/*'];
const META_FORMS = ['PartialObjectMetadata', 'PartialObjectMetadataList'];

function isAnswered({ type, parameters }: MediaRange, hasTable: boolean): boolean {
  const { as, g = 'meta.k8s.io', v } = parameters;
  if (as === undefined) return ANSWERED.includes(type) || WILDCARDS.includes(type);
  // Tables exist in JSON only, and every kind of object has its metadata.
  const isForm = (type !== ANSWERED[2] && hasTable && as === 'Table') || META_FORMS.includes(as);
  return isForm && g === 'meta.k8s.io' && (v === 'v1' || v === 'v1beta1');
}

/** @throws StatusError 406 when the Accept header names only types that are not answered */
export function refuseUnacceptable(accept: string, hasTable: boolean): void {
  if (!mediaRanges(accept).some((range) => isAnswered(range, hasTable))) throw status.notAcceptable(ANSWERED);
}

/** @throws StatusError 400 for an unknown `includeObject`, 406 for an Accept header without a type that is answered */
export function negotiateShape(accept: string, query: URLSearchParams): Shape {
  refuseUnacceptable(accept, true);
  const includeObject = parseIncludeObject(query.get('includeObject'));
  if (includeObject === undefined) {
    throw status.badRequest('includeObject must be one of "None", "Metadata", "Object"');
  }
  return { form: answerForm(accept), includeObject };
}

const served = (descriptor: ResourceDescriptor, object: KubeObject): KubeObject =>
  descriptor.servedFrom?.toServed(object) ?? object;

/** The response body for one object. */
export function shapeObject(descriptor: ResourceDescriptor, object: KubeObject, shape: Shape, nowMs: number): unknown {
  switch (shape.form.kind) {
    case 'table':
      return buildTable(descriptor, [object], {
        nowMs,
        includeObject: shape.includeObject,
        version: shape.form.version,
        ...defined({ metadata: versionOnly(object.metadata.resourceVersion) }),
      });
    case 'partialMetadata':
      return partialMetadata(object, shape.form.version);
    default:
      return served(descriptor, object);
  }
}

const versionOnly = (resourceVersion: string | undefined) =>
  resourceVersion === undefined ? undefined : { resourceVersion };

const inOrder = ({ compareRows }: ResourceDescriptor, items: ListedPage['items']): ListedPage['items'] =>
  compareRows === undefined ? items : items.toSorted(compareRows);

/**
 * The response body for a list, which ends with its array. Items of a plain list have no kind and apiVersion, unless
 * custom, as upstream.
 */
export function shapeList(descriptor: ResourceDescriptor, list: ListedPage, shape: Shape, nowMs: number): object {
  const metadata = {
    resourceVersion: list.resourceVersion,
    ...defined({ continue: list.continueToken === '' ? undefined : list.continueToken }),
  };
  switch (shape.form.kind) {
    case 'table':
      return buildTable(descriptor, inOrder(descriptor, list.items), {
        nowMs,
        includeObject: shape.includeObject,
        version: shape.form.version,
        metadata,
      });
    case 'partialMetadata':
      return partialMetadataList(list.items, metadata, shape.form.version);
    default: {
      const apiVersion = descriptor.group === '' ? descriptor.version : `${descriptor.group}/${descriptor.version}`;
      return {
        kind: descriptor.listKind,
        apiVersion,
        metadata,
        items: list.items.map((object) => {
          const whole = served(descriptor, object);
          if (descriptor.custom !== undefined) return whole;
          const { kind: _kind, apiVersion: _apiVersion, ...rest } = whole;
          return rest;
        }),
      };
    }
  }
}
