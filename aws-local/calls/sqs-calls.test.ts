import { expect, it } from 'vitest';
import { sqsCalls } from './aws-call.ts';

const place = { region: 'us-east-1', accountId: '000000000000' };
const input = { QueueUrl: 'https://sqs.us-east-1.amazonaws.com/000000000000/parts' };

it('a batch of messages needs the permission of a single message', () => {
  const actionOf = (operation: string) => sqsCalls(operation, input, place)[0]?.action;
  expect(['SendMessage', 'SendMessageBatch', 'ChangeMessageVisibility'].map(actionOf)).toEqual([
    'sqs:SendMessage',
    'sqs:SendMessage',
    'sqs:ChangeMessageVisibility',
  ]);
});
