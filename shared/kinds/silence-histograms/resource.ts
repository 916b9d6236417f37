import { IDENTITY_GROUP } from '../identities/resource.ts';
import { storedResource } from '../stored-resource.ts';

export const SILENCE_HISTOGRAMS = storedResource({
  group: IDENTITY_GROUP,
  version: 'v1alpha1',
  resource: 'silencehistograms',
  kind: 'SilenceHistogram',
  scope: 'cluster',
  // A new one appears once per hour: nothing to watch.
  verbs: ['get', 'list'],
});
