import { WATCH_MEMORY_MEGABYTES } from '../../shared/cost/held-watch.ts';
import { lambdaTotal, total } from '../../shared/functions/alarm-manifest.ts';
import { type FunctionManifest, POLICY_AND_TABLES } from '../../shared/functions/function-manifest.ts';
import { WATCHES_AS_LONG_POLLS } from './metrics.ts';

/** In five minutes. A single failure ends one watch, which its client repeats. */
const FAILURES = 3;

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
  alarms: [
    {
      name: 'watches-failing',
      rank: 172,
      meaning: 'Watches and logs fail or are throttled: clients see changes late, or not at all.',
      pages: false,
      metrics: { errors: lambdaTotal('Errors'), throttles: lambdaTotal('Throttles') },
      expression: 'FILL(errors, 0) + FILL(throttles, 0)',
      when: '>=',
      threshold: FAILURES,
      datapoints: [1, 1],
      periodSeconds: 300,
      missing: 'notBreaching',
      missingBecause: 'without watches there is no data',
    },
    {
      name: 'watches-not-streamed',
      rank: 174,
      meaning: 'The function URL delivers no small chunk: watches are answered as long polls, logs are late.',
      pages: false,
      metrics: { polls: total(WATCHES_AS_LONG_POLLS) },
      when: '>',
      threshold: 0,
      datapoints: [1, 1],
      periodSeconds: 300,
      missing: 'notBreaching',
      missingBecause: 'the metric is emitted only with such a watch',
    },
  ],
} as const satisfies FunctionManifest;
