import { storedResource } from '../stored-resource.ts';
import type { KubeSecret } from '../types.ts';

export const SECRETS = storedResource({
  group: '',
  resource: 'secrets',
  kind: 'Secret',
  scope: 'namespaced',
  selectableFields: { type: (object: KubeSecret) => object.type ?? '' },
});
