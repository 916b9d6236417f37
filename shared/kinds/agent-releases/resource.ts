import { IDENTITY_GROUP } from '../identities/resource.ts';
import { storedResource } from '../stored-resource.ts';

export const AGENT_RELEASES = storedResource({
  group: IDENTITY_GROUP,
  version: 'v1alpha1',
  resource: 'agentreleases',
  kind: 'AgentRelease',
  scope: 'cluster',
});
