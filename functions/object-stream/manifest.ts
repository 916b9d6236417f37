import { COMMIT, type FunctionManifest, POLICY_AND_TABLES } from '../../shared/functions/function-manifest.ts';

export const objectStreamManifest = {
  name: 'object-stream',
  description: 'Reacts to changes of nodes and pods',
  triggers: [
    {
      kind: 'stream',
      id: 'ObjectChanges',
      table: 'objects',
      // Nodes, Pods and retries; not the change log, heads and indexes in the same table (shared/store/layout.ts).
      filters: [
        { dynamodb: { Keys: { pk: { S: [{ prefix: 'o#nodes#' }] } } } },
        { dynamodb: { Keys: { pk: { S: [{ prefix: 'o#pods#' }] } } } },
        // Started retries (shared/ticks/parked-store.ts). TTL deletes these rows: their REMOVE is not delivered.
        { eventName: ['INSERT', 'MODIFY'], dynamodb: { Keys: { pk: { S: [{ prefix: 'r#' }] } } } },
      ],
    },
  ],
  memoryMegabytes: 512,
  timeoutSeconds: 60,
  environment: [...POLICY_AND_TABLES, 'WAKE_FUNCTIONS'],
  wakes: ['scheduler'],
  publishesEvents: true,
  tables: {
    health: ['BatchGetItem', 'UpdateItem'],
    objects: ['BatchGetItem', 'ConditionCheckItem', 'DeleteItem', 'GetItem', 'Query', ...COMMIT],
    control: {
      fleet: ['DeleteItem', 'GetItem'],
      'evictions#*': ['DeleteItem', 'GetItem', 'PutItem'],
      'evictions-due': ['DeleteItem', 'PutItem'],
      'pod-gc': ['BatchGetItem', 'DeleteItem', 'PutItem', 'UpdateItem'],
      cloud: ['DeleteItem', 'PutItem', 'UpdateItem'],
      'cidr#*': ['DeleteItem', 'PutItem', 'Query'],
      parked: ['DeleteItem', 'GetItem', 'UpdateItem'],
      scheduler: ['GetItem', 'UpdateItem'],
      'service-readers': ['DeleteItem', 'PutItem'],
    },
  },
} as const satisfies FunctionManifest;
