import { ageColumn, nameColumn } from '../../kubernetes/columns.ts';
import { withoutEmpty } from '../../kubernetes/normal-form.ts';
import type { KubeConfigMap } from '../application-types.ts';
import { ageOf, integerColumn, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { type KindNames, preparesWhole, storedKind } from '../stored-kind.ts';
import { validateConfigMap } from './validate.ts';

const NAMES: KindNames = {
  group: '',
  resource: 'configmaps',
  kind: 'ConfigMap',
  shortNames: ['cm'],
  scope: 'namespaced',
};

export const configmaps: ResourceDescriptor = storedKind(NAMES, {
  columns: [nameColumn, integerColumn('Data', 'Number of keys.'), ageColumn],
  row: (object: KubeConfigMap, nowMs) => [
    nameOf(object),
    Object.keys(object.data ?? {}).length + Object.keys(object.binaryData ?? {}).length,
    ageOf(object, nowMs),
  ],
  prepare: preparesWhole(NAMES, (object) => withoutEmpty(object, 'data', 'binaryData')),
  validate: validateConfigMap,
});
