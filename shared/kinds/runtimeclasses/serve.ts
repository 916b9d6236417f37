import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { ageOf, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { preparesWhole, servedKind } from '../served-kind.ts';
import type { KubeRuntimeClass } from '../types.ts';
import { RUNTIME_CLASSES } from './resource.ts';
import { validateRuntimeClass } from './validate.ts';

export const runtimeclasses: ResourceDescriptor = servedKind(RUNTIME_CLASSES, {
  unconditionalUpdate: false,
  columns: [nameColumn, textColumn('Handler', 'Configuration of the runtime on the nodes.'), ageColumn],
  row: (object: KubeRuntimeClass, nowMs) => [nameOf(object), object.handler ?? '', ageOf(object, nowMs)],
  prepare: preparesWhole(RUNTIME_CLASSES),
  validate: validateRuntimeClass,
});
