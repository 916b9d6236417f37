import { ageColumn, nameColumn } from '../../kubernetes/columns.ts';
import { ageOf, integerColumn, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { servedKind } from '../served-kind.ts';
import type { KubeConfigMap } from '../types.ts';
import { prepareConfigMap } from './defaults.ts';
import { CONFIG_MAPS } from './resource.ts';
import { validateConfigMap } from './validate.ts';

export const configmaps: ResourceDescriptor = servedKind(CONFIG_MAPS, {
  shortNames: ['cm'],
  columns: [nameColumn, integerColumn('Data', 'Number of keys.'), ageColumn],
  row: (object: KubeConfigMap, nowMs) => [
    nameOf(object),
    Object.keys(object.data ?? {}).length + Object.keys(object.binaryData ?? {}).length,
    ageOf(object, nowMs),
  ],
  prepare: prepareConfigMap,
  validate: validateConfigMap,
});
