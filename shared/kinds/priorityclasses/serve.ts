import { ageSince } from '../../kubernetes/age.ts';
import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { freshMetadata, inheritMetadata, typed, withoutEmpty } from '../../kubernetes/normal-form.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { DEFAULT_PREEMPTION_POLICY } from '../pods/pod-priority.ts';
import type { KubeObject, KubePriorityClass } from '../types.ts';
import { SYSTEM_PRIORITIES, validatePriorityClass } from './validate.ts';

export const SCHEDULING_GROUP = 'scheduling.k8s.io';

const storedForm = (object: KubePriorityClass): KubeObject =>
  typed(SCHEDULING_GROUP, 'v1', 'PriorityClass', {
    ...withoutEmpty(object, 'globalDefault', 'description'),
    metadata: object.metadata,
    preemptionPolicy: object.preemptionPolicy || DEFAULT_PREEMPTION_POLICY,
    value: object.value ?? 0,
  });

export const priorityclasses: ResourceDescriptor = {
  group: SCHEDULING_GROUP,
  version: 'v1',
  resource: 'priorityclasses',
  singular: 'priorityclass',
  kind: 'PriorityClass',
  listKind: 'PriorityClassList',
  shortNames: ['pc'],
  categories: [],
  namespaced: false,
  verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
  subresources: [],
  shards: 1,
  columns: [
    nameColumn,
    { name: 'Value', type: 'integer', format: '', description: 'Priority of pods of this class.', priority: 0 },
    {
      name: 'Global-Default',
      type: 'boolean',
      format: '',
      description: 'Whether pods that name no class get this one.',
      priority: 0,
    },
    ageColumn,
    textColumn('PreemptionPolicy', 'Whether such pods may displace others.'),
  ],
  row: (object: KubePriorityClass, nowMs) => [
    object.metadata.name ?? '',
    object.value ?? 0,
    object.globalDefault === true,
    ageSince(object.metadata.creationTimestamp, nowMs),
    object.preemptionPolicy ?? '',
  ],
  selectableFields: { 'metadata.name': (object) => object.metadata.name ?? '' },
  unconditionalUpdate: true,
  createOnUpdate: false,
  hasGeneration: true,
  prepareForCreate: (object) =>
    storedForm({ ...object, metadata: { ...freshMetadata(object.metadata), generation: 1 } }),
  prepareForUpdate: (next, old) => storedForm({ ...next, metadata: inheritMetadata(next.metadata, old.metadata) }),
  validate: (object, { old }) => validatePriorityClass(object, old),
};

/** The two classes every cluster has from the start, without system fields. */
export const systemPriorityClasses = (): KubeObject[] =>
  Object.entries(SYSTEM_PRIORITIES).map(([name, value]) =>
    priorityclasses.prepareForCreate({ metadata: { name }, value }, { nowMs: 0 }),
  );

export const isSystemPriorityClass = (name: string): boolean => Object.hasOwn(SYSTEM_PRIORITIES, name);
