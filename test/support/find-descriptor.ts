import type { ResourceDescriptor } from '../../shared/kinds/descriptor.ts';
import { resources } from '../../shared/kinds/registry.ts';

/**
 * The descriptor of what is stored under a plural name. Metrics have the plural names of what they measure, and come
 * later.
 */
export const findDescriptor = (resource: string): ResourceDescriptor | undefined =>
  resources.find((each) => each.servedFrom === undefined && each.resource === resource);
