/** The default ClusterRoles and ClusterRoleBindings, with the rules of viewers for the kinds that are served. */

import { VIEWER_PATHS, viewerRulesOf } from '../../access/viewer-rules.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { bootstraptokens, resources } from '../registry.ts';
import { defaultClusterRoleBindings, defaultClusterRoles } from './default-roles.ts';
import { clusterrolebindings, clusterroles } from './serve.ts';

/** Rules of the group nodekeeper:viewers for resources. */
export const viewerRules = viewerRulesOf(resources);

/** All objects but Secrets and what lets machines enrol. Who trusts a hub with Secrets binds it to one more role. */
const hubRules = viewerRulesOf(
  resources.filter((each) => each !== bootstraptokens).map((each) => ({ ...each, subresources: [] })),
);

export const defaultRoles = defaultClusterRoles({ viewer: [...viewerRules, VIEWER_PATHS], hub: hubRules });
export const defaultBindings = defaultClusterRoleBindings;

const NAMES: ReadonlyMap<ResourceDescriptor, ReadonlySet<string>> = new Map([
  [clusterroles, new Set(defaultRoles.map(({ metadata }) => metadata.name ?? ''))],
  [clusterrolebindings, new Set(defaultBindings.map(({ metadata }) => metadata.name ?? ''))],
]);

/** Whether every cluster has an object of this name, which cannot be written. */
export const isDefaultPolicy = (descriptor: ResourceDescriptor, name: string): boolean =>
  NAMES.get(descriptor)?.has(name) === true;
