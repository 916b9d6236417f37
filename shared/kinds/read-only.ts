/** Kinds that no client writes: there is no verb for it, not even for system:masters. */
import type { ResourceDescriptor } from './descriptor.ts';

type Writing =
  | 'unconditionalUpdate'
  | 'createOnUpdate'
  | 'hasGeneration'
  | 'prepareForCreate'
  | 'prepareForUpdate'
  | 'validate';

/** The part of a descriptor that only writes use. */
export const READ_ONLY: Pick<ResourceDescriptor, Writing> = {
  unconditionalUpdate: false,
  createOnUpdate: false,
  hasGeneration: false,
  prepareForCreate: (object) => object,
  prepareForUpdate: (_next, old) => old,
  validate: () => [],
};
