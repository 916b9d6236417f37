import { COMMIT, type FunctionManifest, POLICY_AND_TABLES } from '../../domain/functions/function-manifest.ts';

export const objectStreamManifest = {
  name: 'object-stream',
  description: 'Reacts to changes of nodes and pods',
  triggers: [
    {
      kind: 'stream',
      id: 'ObjectChanges',
      table: 'objects',
      // Nodes and Pods; not the change log, heads and indexes in the same table (shared/store/layout.ts).
      filters: [
        { dynamodb: { Keys: { pk: { S: [{ prefix: 'o#nodes#' }] } } } },
        { dynamodb: { Keys: { pk: { S: [{ prefix: 'o#pods#' }] } } } },
      ],
    },
  ],
  memoryMegabytes: 512,
  timeoutSeconds: 60,
  environment: POLICY_AND_TABLES,
  publishesEvents: true,
  tables: {
    health: ['BatchGetItem', 'UpdateItem'],
    objects: ['BatchGetItem', 'ConditionCheckItem', 'DeleteItem', 'GetItem', 'Query', ...COMMIT],
    control: {
      fleet: ['DeleteItem', 'GetItem'],
      'evictions#*': ['DeleteItem', 'GetItem', 'PutItem'],
      'evictions-due': ['DeleteItem', 'PutItem'],
      'pod-gc': ['DeleteItem', 'PutItem', 'UpdateItem'],
      cloud: ['DeleteItem', 'PutItem', 'UpdateItem'],
      'cidr#*': ['DeleteItem', 'PutItem', 'Query'],
    },
  },
} as const satisfies FunctionManifest;
