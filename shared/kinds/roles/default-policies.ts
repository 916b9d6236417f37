/** The default ClusterRoles and ClusterRoleBindings, with the rules of viewers for the kinds that are served. */

import { VIEWER_PATHS, viewerRulesOf } from '../../access/viewer-rules.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { resources } from '../registry.ts';
import { defaultClusterRoleBindings, defaultClusterRoles } from './default-roles.ts';
import { clusterrolebindings, clusterroles } from './serve.ts';

/** Rules of the group nodekeeper:viewers for resources. */
export const viewerRules = viewerRulesOf(resources);

export const defaultRoles = defaultClusterRoles([...viewerRules, VIEWER_PATHS]);
export const defaultBindings = defaultClusterRoleBindings;

const NAMES: ReadonlyMap<ResourceDescriptor, ReadonlySet<string>> = new Map([
  [clusterroles, new Set(defaultRoles.map(({ metadata }) => metadata.name ?? ''))],
  [clusterrolebindings, new Set(defaultBindings.map(({ metadata }) => metadata.name ?? ''))],
]);

/** Whether every cluster has an object of this name, which cannot be written. */
export const isDefaultPolicy = (descriptor: ResourceDescriptor, name: string): boolean =>
  NAMES.get(descriptor)?.has(name) === true;
