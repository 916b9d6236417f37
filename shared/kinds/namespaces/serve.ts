import { ageSince } from '../../kubernetes/age.ts';
import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import {
  freshMetadata,
  inheritMetadata,
  recordOf,
  typed,
  withoutEmpty,
  withoutNulls,
} from '../../kubernetes/normal-form.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import type { KubeNamespace, ObjectMeta } from '../types.ts';
import { NAMESPACES } from './resource.ts';
import { validateNamespace } from './validate.ts';

/** Namespaces every cluster has from the start. */
export const SYSTEM_NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system'] as const;

/** Lets a selector name a namespace; kept by the API, whoever tries to change it. */
const NAME_LABEL = 'kubernetes.io/metadata.name';

const withNameLabel = (meta: ObjectMeta): ObjectMeta =>
  meta.name === undefined || meta.name === '' ? meta : { ...meta, labels: { ...meta.labels, [NAME_LABEL]: meta.name } };

/** A component still has work to do before the namespace may be removed. */
export const hasSpecFinalizers = ({ spec }: KubeNamespace): boolean => (spec?.finalizers ?? []).length > 0;

export const namespaces: ResourceDescriptor = {
  ...NAMESPACES,
  singular: 'namespace',
  listKind: 'NamespaceList',
  shortNames: ['ns'],
  categories: [],
  subresources: [
    { name: 'finalize', verbs: ['update'] },
    { name: 'status', verbs: ['get', 'patch', 'update'] },
  ],
  columns: [nameColumn, textColumn('Status', 'Active, or Terminating while it is emptied.'), ageColumn],
  row: (object: KubeNamespace, nowMs) => [
    object.metadata.name ?? '',
    object.status?.phase ?? '',
    ageSince(object.metadata.creationTimestamp, nowMs),
  ],
  unconditionalUpdate: true,
  createOnUpdate: false,
  hasGeneration: false,
  prepareForCreate(object: KubeNamespace) {
    const finalizers = object.spec?.finalizers ?? [];
    return typed('', 'v1', 'Namespace', {
      ...object,
      metadata: withNameLabel(freshMetadata(object.metadata)),
      spec: { finalizers: finalizers.includes('kubernetes') ? finalizers : [...finalizers, 'kubernetes'] },
      status: { phase: 'Active' },
    });
  },
  prepareForUpdate(next, old, { subresource }) {
    const spec = subresource === 'finalize' ? withoutEmpty(withoutNulls(recordOf(next.spec)), 'finalizers') : old.spec;
    return typed('', 'v1', 'Namespace', {
      ...next,
      metadata: withNameLabel(inheritMetadata(next.metadata, old.metadata)),
      spec: spec ?? {},
      status: subresource === 'status' ? withoutNulls(recordOf(next.status)) : (old.status ?? { phase: 'Active' }),
    });
  },
  validate: (object, { old, subresource }) => validateNamespace(object, old, subresource),
};
