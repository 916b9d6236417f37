import { metadata } from '../../kubernetes/schema/meta.ts';
import { bool, int32, kindStruct, pointer, required, type StructSchema, text } from '../../kubernetes/schema/schema.ts';

export const priorityClass: StructSchema = kindStruct(
  'io.k8s.api.scheduling.v1.PriorityClass',
  { group: 'scheduling.k8s.io', version: 'v1', kind: 'PriorityClass' },
  'PriorityClass defines mapping from a priority class name to the priority integer value.',
  {
    metadata,
    value: required(int32('The priority; pods with a higher one are scheduled first.')),
    globalDefault: bool('Whether this class applies to pods without a class.'),
    description: text('When to use the class.'),
    preemptionPolicy: pointer(text('Whether its pods may preempt other pods: PreemptLowerPriority or Never.')),
  },
);
