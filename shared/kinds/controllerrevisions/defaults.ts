import { type Prepare, preparesWhole } from '../served-kind.ts';
import type { KubeControllerRevision } from '../types.ts';
import { CONTROLLER_REVISIONS } from './resource.ts';

const stored = preparesWhole(CONTROLLER_REVISIONS, (object: KubeControllerRevision) => ({
  ...object,
  revision: object.revision ?? 0,
}));

/** Nulls in the data stay: clients compare its bytes. */
const withData = (prepared: KubeControllerRevision, { data }: KubeControllerRevision): KubeControllerRevision =>
  data === undefined ? prepared : { ...prepared, data };

export const prepareRevision: Prepare = {
  ...stored,
  prepareForCreate: (object, context) => withData(stored.prepareForCreate(object, context), object),
  prepareForUpdate: (next, old, context) => withData(stored.prepareForUpdate(next, old, context), next),
};
