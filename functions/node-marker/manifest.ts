import { COMMIT, type FunctionManifest, POLICY_AND_TABLES } from '../../shared/functions/function-manifest.ts';

export const nodeMarkerManifest = {
  name: 'node-marker',
  description: 'Marks the nodes of a mass failure, in parts that node-monitor sends',
  triggers: [{ kind: 'parts' }],
  // One vCPU: a mark costs CPU for the text of its Node, and less memory would only make it slower.
  memoryMegabytes: 1_769,
  timeoutSeconds: 15,
  environment: [...POLICY_AND_TABLES, 'PART_QUEUE_URL'],
  tables: {
    health: ['BatchGetItem', 'UpdateItem'],
    objects: ['BatchGetItem', 'Query', ...COMMIT],
    control: { fleet: ['GetItem'] },
  },
} as const satisfies FunctionManifest;
