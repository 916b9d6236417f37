import type { Column } from '../kinds/descriptor.ts';

export const nameColumn: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name of the object, unique within its namespace.',
  priority: 0,
};

export const ageColumn: Column = {
  name: 'Age',
  type: 'string',
  format: '',
  description: 'Time since the object was created.',
  priority: 0,
};

export const textColumn = (name: string, description: string, priority = 0): Column => ({
  name,
  type: 'string',
  format: '',
  description,
  priority,
});

/** Of an owner of pods, with `-o wide`. */
export const selectorColumn = textColumn('Selector', 'Labels of the pods.', 1);

/** What stands in a cell that has nothing to show. */
export const NONE = '<none>';
export const UNKNOWN = '<unknown>';
