import { COMMIT, type FunctionManifest, POLICY_AND_TABLES } from '../../shared/functions/function-manifest.ts';

export const apiManifest = {
  name: 'api',
  description: 'The Kubernetes API',
  triggers: [{ kind: 'http', requests: 'others' }],
  memoryMegabytes: 512,
  // One second below the limit of the HTTP API: the client then gets our response.
  timeoutSeconds: 29,
  environment: [...POLICY_AND_TABLES, 'STATIC_TOKENS', 'ACCESS_ENTRIES_FILE', 'AUDIT_LOG_GROUP', 'AUDIT_LOG_STREAM'],
  tables: {
    health: ['BatchGetItem', 'DeleteItem', 'GetItem', 'Query', 'Scan', 'UpdateItem'],
    // A custom resource is created under a condition on its definition.
    objects: ['BatchGetItem', 'ConditionCheckItem', 'DeleteItem', 'GetItem', 'Query', ...COMMIT],
    control: {
      fleet: ['GetItem'],
      move: ['GetItem'],
      'node-keys#*': ['DeleteItem', 'GetItem', 'PutItem', 'Query'],
      'bootstrap-tokens': ['DeleteItem', 'GetItem', 'PutItem', 'Query', 'UpdateItem'],
      'probe-keys': ['GetItem'],
      // Which history of the tables this is, for programs that keep a copy (ChangeReads).
      history: ['GetItem'],
      silences: ['GetItem', 'Query'],
      'account-keys': ['GetItem', 'PutItem', 'Query'],
      // A pod that is created or bound on a node.
      'use#*': ['UpdateItem'],
      // A pod that a hub puts in the place of another one.
      'owner#*': ['UpdateItem'],
      refusals: ['UpdateItem'],
      // Whether a NetworkPolicy that is created is enforced.
      'service-readers': ['Query'],
      // What an agent makes and removes.
      'volume-work#*': ['DeleteItem', 'Query'],
      // Counts what a machine or a bootstrap token creates.
      'signing-requests': ['UpdateItem'],
    },
  },
  needsWith: {
    // It signs the tickets that `watch` checks; long polls need none. Logs are streamed, too.
    streamedWatches: [
      {
        environment: ['WATCH_URL'],
        // How watches are sent is shown in the ClusterStatus.
        tables: { control: { 'ticket-keys': ['PutItem'], 'watch-slots': ['GetItem'] } },
      },
      {
        tables: {
          control: {
            'log-requests': ['DeleteItem', 'PutItem', 'Query', 'UpdateItem'],
            'log-chunks#*': ['PutItem'],
          },
        },
      },
    ],
    // Instances that have enrolled are recorded.
    instanceEnrolment: [
      { environment: ['ACCOUNT_ID'], ec2: ['DescribeInstances'] },
      { tables: { control: { 'node-instances': ['GetItem', 'PutItem'] } } },
    ],
  },
} as const satisfies FunctionManifest;
