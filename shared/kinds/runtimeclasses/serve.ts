import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import type { KubeRuntimeClass } from '../application-types.ts';
import { ageOf, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { type KindNames, preparesWhole, storedKind } from '../stored-kind.ts';
import { validateRuntimeClass } from './validate.ts';

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
