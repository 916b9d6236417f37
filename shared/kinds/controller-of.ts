import type { KubeObject, OwnerReference } from './types.ts';

/** The owner that controls an object; undefined without one. */
export const controllerOf = ({ metadata }: KubeObject): OwnerReference | undefined =>
  (metadata.ownerReferences ?? []).find(({ controller }) => controller === true);
