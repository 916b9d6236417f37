import { IDENTITY_GROUP } from '../identities/resource.ts';
import { storedResource } from '../stored-resource.ts';

export const SITE_POLICIES = storedResource({
  group: IDENTITY_GROUP,
  version: 'v1alpha1',
  resource: 'sitepolicies',
  kind: 'SitePolicy',
  scope: 'cluster',
});
