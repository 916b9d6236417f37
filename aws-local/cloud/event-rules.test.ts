import { describe, expect, it } from 'vitest';
import { StartError } from '../../shared/host/start-error.ts';
import { openEventBus } from './event-rules.ts';
import { stateChangeEvent } from './events.ts';

const CHANGE = { instanceId: 'i-0123456789abcdef0', state: 'stopped', atMs: Date.UTC(2026, 10, 20, 8, 30, 1) } as const;
const EVENT = stateChangeEvent(CHANGE, { region: 'us-east-1', accountId: '000000000000' });
const rule = (pattern: unknown, ...functionIds: string[]) => ({
  logicalId: 'Rule',
  pattern: JSON.stringify(pattern),
  functionIds,
});

describe('events of EC2', () => {
  it('have the form in which EventBridge delivers them', () => {
    expect(EVENT).toEqual({
      version: '0',
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      'detail-type': 'EC2 Instance State-change Notification',
      source: 'aws.ec2',
      account: '000000000000',
      time: '2026-11-20T08:30:01Z',
      region: 'us-east-1',
      resources: ['arn:aws:ec2:us-east-1:000000000000:instance/i-0123456789abcdef0'],
      detail: { 'instance-id': 'i-0123456789abcdef0', state: 'stopped' },
    });
  });

  it('reach the functions of every rule that matches, and no other', () => {
    const invoked: string[] = [];
    const bus = openEventBus(
      [
        rule({ source: ['aws.ec2'], 'detail-type': ['EC2 Instance State-change Notification'] }, 'A', 'B'),
        rule({ source: ['aws.ec2'], detail: { state: ['stopped', 'terminated'] } }, 'C'),
        rule({ source: ['aws.ec2'], detail: { state: ['running'] } }, 'D'),
        rule({ source: ['aws.health'] }, 'E'),
      ],
      (functionId, event) => {
        expect(event).toBe(EVENT);
        invoked.push(functionId);
      },
    );
    bus.put(EVENT);
    expect(invoked).toEqual(['A', 'B', 'C']);
    bus.put({ source: 'aws.s3' });
    expect(bus.counters).toEqual({ matched: 1, unmatched: 1 });
  });

  it('refuses a pattern it does not understand', () => {
    expect(() => openEventBus([rule({ source: [{ colour: 'red' }] }, 'A')], () => {})).toThrow(StartError);
  });
});
