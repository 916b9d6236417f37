import { COMMIT, type FunctionManifest, POLICY_AND_TABLES } from '../../shared/functions/function-manifest.ts';

export const healthStreamManifest = {
  name: 'health-stream',
  description: 'Reacts to signs of life of nodes that are tainted, marked or planned to be silent',
  triggers: [
    {
      kind: 'stream',
      id: 'HealthChanges',
      table: 'health',
      // What reconcile.ts may have work for (attributes: shared/fleet/nodes/health.ts): a Ready node with
      // NoExecute taints of ours, a node that was marked Unknown, and one with a planned silence. A node that
      // registers, is NotReady or healthy invokes nothing. `S` stays in the row after the silence ended; only one that
      // stands is suspect (`s`).
      filters: [
        { dynamodb: { NewImage: { y: { S: ['T'] }, k: { N: ['1', '2', '3'] } } } },
        { dynamodb: { NewImage: { y: { S: ['U'] }, m: { N: [{ exists: true }] } } } },
        { dynamodb: { NewImage: { s: { N: ['1'] }, S: { N: [{ exists: true }] } } } },
      ],
    },
  ],
  memoryMegabytes: 256,
  timeoutSeconds: 60,
  environment: POLICY_AND_TABLES,
  tables: {
    health: ['UpdateItem'],
    objects: ['GetItem', ...COMMIT],
    control: { fleet: ['DeleteItem', 'GetItem'] },
  },
} as const satisfies FunctionManifest;
