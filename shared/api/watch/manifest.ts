import { WATCH_MEMORY_MEGABYTES } from '../../domain/cost/held-watch.ts';
import { type FunctionManifest, POLICY_AND_TABLES } from '../../domain/functions/function-manifest.ts';

export const watchManifest = {
  name: 'watch',
  description: 'Streams watches of the Kubernetes API',
  triggers: [{ kind: 'functionUrl' }],
  memoryMegabytes: WATCH_MEMORY_MEGABYTES,
  // Lambda's longest: the watch of a client ends and resumes this often.
  timeoutSeconds: 900,
  environment: [...POLICY_AND_TABLES, 'STATIC_TOKENS'],
  tables: {
    health: ['BatchGetItem', 'GetItem', 'Query', 'Scan'],
    objects: ['BatchGetItem', 'GetItem', 'Query'],
    // Reading the change log in order raises the heads of its shards.
    objectPartitions: { 'h#*': ['UpdateItem'] },
    control: {
      'node-keys#*': ['GetItem'],
      'ticket-keys': ['GetItem'],
      'watch-slots': ['DeleteItem', 'PutItem', 'Query'],
      'log-requests': ['DeleteItem', 'GetItem', 'UpdateItem'],
      'log-chunks#*': ['DeleteItem', 'Query'],
    },
  },
} as const satisfies FunctionManifest;
