import type { ResourceDescriptor } from '../../kinds/descriptor.ts';
import type { KubeObject } from '../../kinds/types.ts';
import { buildTable } from '../../kubernetes/table.ts';
import { type Shape, shapeObject } from '../request/response-shape.ts';
import type { WatchEvent } from './watch-events.ts';

export interface LineOptions {
  readonly nowMs: number;
  /** A Table lists its columns only in the first event of a watch. */
  readonly first: boolean;
  /** This bookmark ends the initial events (`sendInitialEvents`). */
  readonly endsState?: boolean;
}

/** One event as a line of JSON. Kubernetes: "API concepts", watch. A watch of Tables carries tables of one row. */
export function watchEventLine(
  descriptor: ResourceDescriptor,
  event: WatchEvent,
  shape: Shape,
  options: LineOptions,
): string {
  const object = event.type === 'BOOKMARK' ? bookmark(descriptor, event.resourceVersion, options) : event.object;
  return `${JSON.stringify({ type: event.type, object: shaped(descriptor, event.type, object, shape, options) })}\n`;
}

function shaped(
  descriptor: ResourceDescriptor,
  type: WatchEvent['type'],
  object: KubeObject,
  shape: Shape,
  { nowMs, first }: LineOptions,
): unknown {
  if (shape.form.kind !== 'table') {
    return type === 'BOOKMARK' && shape.form.kind === 'object' ? object : shapeObject(descriptor, object, shape, nowMs);
  }
  const metadata = { resourceVersion: object.metadata.resourceVersion ?? '' };
  return buildTable(descriptor, type === 'BOOKMARK' ? [] : [object], {
    nowMs,
    includeObject: shape.includeObject,
    version: shape.form.version,
    metadata,
    withoutColumns: !first,
  });
}

function bookmark(descriptor: ResourceDescriptor, resourceVersion: string, { endsState }: LineOptions): KubeObject {
  const apiVersion = descriptor.group === '' ? descriptor.version : `${descriptor.group}/${descriptor.version}`;
  return {
    kind: descriptor.kind,
    apiVersion,
    metadata: {
      resourceVersion,
      creationTimestamp: null,
      ...(endsState === true ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}),
    },
  };
}
