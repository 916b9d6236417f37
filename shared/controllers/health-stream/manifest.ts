import { COMMIT, type FunctionManifest, POLICY_AND_TABLES } from '../../domain/functions/function-manifest.ts';

export const healthStreamManifest = {
  name: 'health-stream',
  description: 'Reacts to first heartbeats and to heartbeats of suspect nodes',
  triggers: [
    {
      kind: 'stream',
      id: 'HealthChanges',
      table: 'health',
      // The first row of a node, and every change of a row with the suspect flag (`s` = 1). Heartbeats of healthy nodes
      // match neither, so in steady state this stream invokes nothing.
      filters: [{ eventName: ['INSERT'] }, { dynamodb: { NewImage: { s: { N: ['1'] } } } }],
    },
  ],
  memoryMegabytes: 256,
  timeoutSeconds: 60,
  environment: POLICY_AND_TABLES,
  tables: {
    health: ['ConditionCheckItem', 'UpdateItem'],
    objects: ['GetItem', ...COMMIT],
    control: { fleet: ['DeleteItem', 'GetItem'] },
  },
} as const satisfies FunctionManifest;
