import {
  freshMetadata,
  inheritMetadata,
  type Json,
  recordOf,
  typed,
  withoutNulls,
} from '../../kubernetes/normal-form.ts';
import { canonicalMicroTime } from '../../kubernetes/time.ts';
import type { Prepare } from '../served-kind.ts';
import { LEASE_GROUP } from './resource.ts';

function storedSpec(received: unknown): Json {
  const spec = withoutNulls(recordOf(received));
  for (const key of ['acquireTime', 'renewTime']) {
    const time = spec[key];
    if (typeof time === 'string') spec[key] = canonicalMicroTime(time);
  }
  return spec;
}

export const prepareLease: Prepare = {
  hasGeneration: false,
  prepareForCreate: (object) =>
    typed(LEASE_GROUP, 'v1', 'Lease', {
      ...object,
      metadata: freshMetadata(object.metadata),
      spec: storedSpec(object.spec),
    }),
  prepareForUpdate: (next, old) =>
    typed(LEASE_GROUP, 'v1', 'Lease', {
      ...next,
      metadata: inheritMetadata(next.metadata, old.metadata),
      spec: storedSpec(next.spec),
    }),
};
