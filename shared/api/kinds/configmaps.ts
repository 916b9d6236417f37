import type { KubeConfigMap } from '../../kube/application-types.ts';
import { ageColumn, nameColumn } from '../../kube/columns.ts';
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import { withoutEmpty } from '../../kube/normal-form.ts';
import { validateConfigMap } from '../../kube/validation/config.ts';
import { ageOf, integerColumn, nameOf } from './cells.ts';
import { type KindNames, preparesWhole, storedKind } from './stored-kind.ts';

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
