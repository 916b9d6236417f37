import { storedResource } from '../stored-resource.ts';
import type { KubeNode } from '../types.ts';

export const NODES = storedResource({
  group: '',
  resource: 'nodes',
  kind: 'Node',
  scope: 'cluster',
  shards: 8,
  selectableFields: {
    'spec.unschedulable': (node: KubeNode) => String(node.spec?.unschedulable === true),
  },
});
