import { describe, expect, it } from 'vitest';
import { isInstanceChange } from './instance-change.ts';

const event = {
  version: '0',
  id: '7bf73129-1428-4cd3-a780-95db273d1602',
  'detail-type': 'EC2 Instance State-change Notification',
  source: 'aws.ec2',
  account: '123456789012',
  time: '2026-11-20T21:00:00Z',
  region: 'us-east-1',
  resources: ['arn:aws:ec2:us-east-1:123456789012:instance/i-0123456789abcdef0'],
  detail: { 'instance-id': 'i-0123456789abcdef0', state: 'terminated' },
};

describe('an event from EventBridge', () => {
  it('is recognised by its detail type and instance id', () => {
    expect(isInstanceChange(event)).toBe(true);
  });

  it.each([
    ['ticks', { Records: [] }],
    ['another type', { ...event, 'detail-type': 'EC2 Spot Instance Interruption Warning' }],
    ['one without an instance', { ...event, detail: { state: 'stopped' } }],
    ['one without detail', { 'detail-type': event['detail-type'] }],
    ['nothing', null],
    ['text', 'EC2 Instance State-change Notification'],
  ])('is not %s', (_, other) => {
    expect(isInstanceChange(other)).toBe(false);
  });
});
