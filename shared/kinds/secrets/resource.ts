import type { KubeSecret } from '../application-types.ts';
import { storedResource } from '../stored-resource.ts';

export const SECRETS = storedResource({
  group: '',
  resource: 'secrets',
  kind: 'Secret',
  scope: 'namespaced',
  selectableFields: { type: (object: KubeSecret) => object.type ?? '' },
});
