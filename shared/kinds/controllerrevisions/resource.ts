import { storedResource } from '../stored-resource.ts';

export const CONTROLLER_REVISIONS = storedResource({
  group: 'apps',
  resource: 'controllerrevisions',
  kind: 'ControllerRevision',
  scope: 'namespaced',
});

export const POD_TEMPLATES = storedResource({
  group: '',
  resource: 'podtemplates',
  kind: 'PodTemplate',
  scope: 'namespaced',
});
