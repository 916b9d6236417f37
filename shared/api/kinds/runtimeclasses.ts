import type { KubeRuntimeClass } from '../../kube/application-types.ts';
import { ageColumn, nameColumn, textColumn } from '../../kube/columns.ts';
import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import { validateRuntimeClass } from '../../kube/validation/runtime-class.ts';
import { ageOf, nameOf } from './cells.ts';
import { type KindNames, preparesWhole, storedKind } from './stored-kind.ts';

const NAMES: KindNames = { group: 'node.k8s.io', resource: 'runtimeclasses', kind: 'RuntimeClass', scope: 'cluster' };

export const runtimeclasses: ResourceDescriptor = {
  ...storedKind(NAMES, {
    unconditionalUpdate: false,
    columns: [nameColumn, textColumn('Handler', 'Configuration of the runtime on the nodes.'), ageColumn],
    row: (object: KubeRuntimeClass, nowMs) => [nameOf(object), object.handler ?? '', ageOf(object, nowMs)],
    prepare: preparesWhole(NAMES),
    validate: validateRuntimeClass,
  }),
};
