import { ageSince } from '../../kubernetes/age.ts';
import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import type { KubePriorityClass } from '../types.ts';
import { preparePriorityClass } from './defaults.ts';
import { PRIORITY_CLASSES } from './resource.ts';
import { validatePriorityClass } from './validate.ts';

export const priorityclasses: ResourceDescriptor = {
  ...PRIORITY_CLASSES,
  singular: 'priorityclass',
  listKind: 'PriorityClassList',
  shortNames: ['pc'],
  categories: [],
  subresources: [],
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
  unconditionalUpdate: true,
  createOnUpdate: false,
  ...preparePriorityClass,
  validate: (object, { old }) => validatePriorityClass(object, old),
};
