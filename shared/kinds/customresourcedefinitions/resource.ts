import { storedResource } from '../stored-resource.ts';

export const CUSTOM_RESOURCE_DEFINITIONS = storedResource({
  group: 'apiextensions.k8s.io',
  resource: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  scope: 'cluster',
});

/** Holds a definition that is deleted, until its objects are. */
export const CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io';
