import { freshMetadata, inheritMetadata, nextGeneration, typed } from '../kubernetes/normal-form.ts';
import type { ResourceDescriptor } from './descriptor.ts';
import type { KubeObject, ObjectMeta } from './types.ts';

/** The stored form of a kind with a status subresource. */
export interface SpecAndStatus {
  /** Absent: true. */
  readonly hasGeneration?: boolean;
  /** A write of the status does not change the labels. Absent: it may. */
  readonly keepsLabels?: boolean;
  /** A change of the annotations raises the generation. Absent: only one of the spec does. */
  readonly annotationsCount?: boolean;
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  storedSpec(spec: KubeObject['spec']): Record<string, unknown>;
  /** `undefined`: the status of a new object. */
  storedStatus(status: KubeObject['status']): Record<string, unknown>;
}

type Prepare = Pick<ResourceDescriptor, 'hasGeneration' | 'prepareForCreate' | 'prepareForUpdate'>;

/**
 * How such a kind prepares its writes. A write of the object changes the spec and keeps the status; a write of the
 * status keeps the spec. A creation ignores the status that was sent.
 */
export const preparesSpecAndStatus = ({
  group,
  version,
  kind,
  storedSpec,
  storedStatus,
  hasGeneration = true,
  keepsLabels = false,
  annotationsCount = false,
}: SpecAndStatus): Prepare => ({
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
