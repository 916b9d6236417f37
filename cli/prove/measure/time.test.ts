import { expect, it } from 'vitest';
import type { Calls, Measuring } from '../calls.ts';
import { MEASURE_TIME } from './time.ts';

it('ends the observation of a queue when its messages cannot be received, after one attempt', async () => {
  const asked: string[] = [];
  const json: Calls['json'] = async (_service, action) => {
    asked.push(action);
    return action === 'ReceiveMessage'
      ? { status: 400, body: { __type: 'com.amazonaws.sqs#AccessDenied' } }
      : { status: 200, body: {} };
  };
  const measuring = {
    calls: { json, nowMs: () => 0 },
    cluster: { queueUrl: 'https://sqs.example/q' },
    windowSeconds: 300,
  } as unknown as Measuring;
  await expect(MEASURE_TIME['sqs-delay'](measuring)).rejects.toThrow(
    'no message can be received: com.amazonaws.sqs#AccessDenied',
  );
  expect(asked.filter((action) => action === 'ReceiveMessage')).toHaveLength(1);
});
