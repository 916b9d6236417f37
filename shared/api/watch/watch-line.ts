import type { ResourceDescriptor } from '../../kinds/descriptor.ts';
import type { KubeObject } from '../../kinds/types.ts';
import { buildTable, type Shape, shapeObject } from '../response-body.ts';
import type { WatchEvent } from './watch-events.ts';

export interface LineOptions {
  readonly nowMs: number;
  /** A Table lists its columns only in the first event of a watch. */
  readonly first: boolean;
  /** This bookmark ends the initial events (`sendInitialEvents`). */
  readonly endsState?: boolean;
}

/**
 * Lines of changed objects, by type: one watch may see a change as an addition to its selection that is a modification
 * to others. A process that reads the change log once for all its watches writes a line once for them, not once for
 * each: 500 watches then send one text, which V8 need not copy. A line is kept as long as its object, which nothing
 * changes in place.
 */
const lines = new WeakMap<KubeObject, Partial<Record<WatchEvent['type'], string>>>();

/** One event as a line of JSON. Kubernetes: "API concepts", watch. A watch of Tables carries tables of one row. */
export function watchEventLine(
  descriptor: ResourceDescriptor,
  event: WatchEvent,
  shape: Shape,
  options: LineOptions,
): string {
  if (event.type === 'BOOKMARK') {
    const object = bookmark(descriptor, event.resourceVersion, options);
    return lineOf(event.type, shaped(descriptor, event.type, object, shape, options));
  }
  const { type, object, fromState } = event;
  // The state is read for each watch. A kind that is served from another one has another text.
  const isShared = shape.form.kind === 'object' && !fromState && descriptor.servedFrom === undefined;
  const known = isShared ? lines.get(object) : undefined;
  const kept = known?.[type];
  if (kept !== undefined) return kept;
  const line = lineOf(type, shaped(descriptor, type, object, shape, options));
  if (isShared) lines.set(object, { ...known, [type]: line });
  return line;
}

const lineOf = (type: WatchEvent['type'], object: unknown): string =>
  `{"type":"${type}","object":${JSON.stringify(object)}}\n`;

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
