/** The form of an answer: the object, a Table, or its metadata alone, as Accept and includeObject ask. */
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import * as status from '../../kube/status.ts';
import {
  type AnswerForm,
  answerForm,
  buildTable,
  type IncludeObject,
  parseIncludeObject,
  partialMetadata,
  partialMetadataList,
} from '../../kube/table.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { ListAnswer } from '../verbs/list-objects.ts';

export interface Shape {
  readonly form: AnswerForm;
  readonly includeObject: IncludeObject;
}

export function negotiateShape(accept: string, query: URLSearchParams): Shape {
  const includeObject = parseIncludeObject(query.get('includeObject'));
  if (includeObject === undefined) {
    throw status.badRequest('includeObject must be one of "None", "Metadata", "Object"');
  }
  return { form: answerForm(accept), includeObject };
}

const served = (descriptor: ResourceDescriptor, object: KubeObject): KubeObject =>
  descriptor.servedFrom?.toServed(object) ?? object;

export function shapeObject(descriptor: ResourceDescriptor, object: KubeObject, shape: Shape, nowMs: number): unknown {
  switch (shape.form.kind) {
    case 'table':
      return buildTable(descriptor, [object], {
        nowMs,
        includeObject: shape.includeObject,
        version: shape.form.version,
        ...versionMeta(object.metadata.resourceVersion),
      });
    case 'partialMetadata':
      return partialMetadata(object, shape.form.version);
    default:
      return served(descriptor, object);
  }
}

const versionMeta = (resourceVersion: string | undefined) =>
  resourceVersion === undefined ? {} : { metadata: { resourceVersion } };

export function shapeList(descriptor: ResourceDescriptor, list: ListAnswer, shape: Shape, nowMs: number): unknown {
  const metadata = {
    resourceVersion: list.resourceVersion,
    ...(list.continueToken === '' ? {} : { continue: list.continueToken }),
  };
  switch (shape.form.kind) {
    case 'table':
      return buildTable(descriptor, list.items, {
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
          const { kind: _kind, apiVersion: _apiVersion, ...rest } = served(descriptor, object);
          return rest;
        }),
      };
    }
  }
}
