import { describe, expect, it } from 'vitest';
import type { LocalPlan, StreamSourcePlan } from './assembly/plan.ts';
import { requireSameResources } from './deployment.ts';

const stream: StreamSourcePlan = {
  logicalId: 'S',
  tableName: 'T',
  streamArn: 'arn:stream',
  functionId: 'F',
  filterPatterns: ['{"a":["1"]}'],
  batchSize: 10,
  startingPosition: 'LATEST',
  maximumRetryAttempts: 3,
  maximumRecordAgeSeconds: 60,
  bisectBatchOnError: true,
  reportBatchItemFailures: false,
  failureQueueId: undefined,
};
const plan: LocalPlan = {
  region: 'us-east-1',
  accountId: '000000000000',
  tables: [],
  functions: [],
  api: { apiId: 'A', throttling: { routes: {} } as never, routes: [] },
  functionUrls: [],
  queues: [],
  streamSources: [stream],
  queueSources: [],
  schedules: [{ logicalId: 'M', expression: 'rate(1 minute)', target: { kind: 'queue', queueId: 'Q' }, input: '' }],
  eventRules: [],
};

describe('a deployment while the emulation runs', () => {
  it('may change the filters of a stream', () => {
    requireSameResources(plan, { ...plan, streamSources: [{ ...stream, filterPatterns: [] }] });
  });

  it('may not change a schedule, or which function a stream invokes', () => {
    const next = { ...plan, schedules: [], streamSources: [{ ...stream, functionId: 'G' }] };
    expect(() => requireSameResources(plan, next)).toThrow(
      'the assembly cannot be deployed while the emulation runs: it has other streams, schedules; ' +
        'stop it, and start it with this assembly',
    );
  });
});
