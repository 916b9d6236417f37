import { describe, expect, it } from 'vitest';
import type { SchedulePlan } from '../assembly/plan.ts';
import { fireSchedule } from './scheduler.ts';

const MINUTE = Date.parse('2026-11-20T17:44:00Z');

const tick: SchedulePlan = {
  logicalId: 'Tick',
  expression: 'rate(1 minute)',
  target: { kind: 'sendMessageBatch' },
  input: JSON.stringify({
    QueueUrl: 'url',
    Entries: [0, 5, 55].map((offset) => ({
      Id: `t${offset}`,
      DelaySeconds: offset,
      MessageBody: JSON.stringify({ scheduledAt: '<aws.scheduler.scheduled-time>', offset }),
    })),
  }),
};

function fire(plan: SchedulePlan, nowMs: number) {
  const sent: unknown[] = [];
  fireSchedule(plan, MINUTE, nowMs, {
    sendToUrl: (url, body, delaySeconds) => sent.push([url, JSON.parse(body), delaySeconds]),
    sendToQueue: (id, body) => sent.push([id, body]),
    invoke: (id, event) => sent.push([id, event]),
  });
  return sent;
}

const body = (offset: number) => ({ scheduledAt: '2026-11-20T17:44:00Z', offset });

describe('a schedule that sends a batch of delayed messages', () => {
  it('sends them all at the beginning of the minute, with the scheduled time in them', () => {
    expect(fire(tick, MINUTE)).toEqual([
      ['url', body(0), 0],
      ['url', body(5), 5],
      ['url', body(55), 55],
    ]);
  });

  it('makes up for a minute that runs already, without the messages whose time has passed', () => {
    expect(fire(tick, MINUTE + 12_000)).toEqual([['url', body(55), 43]]);
  });

  it('still sends a message that is late by less than a second', () => {
    expect(fire(tick, MINUTE + 5_900)).toEqual([
      ['url', body(5), 0],
      ['url', body(55), 49.1],
    ]);
  });

  it('sends one message to a queue, or one event to a function', () => {
    const input = '{"at":"<aws.scheduler.scheduled-time>"}';
    expect(fire({ ...tick, target: { kind: 'queue', queueId: 'Q' }, input }, MINUTE)).toEqual([
      ['Q', '{"at":"2026-11-20T17:44:00Z"}'],
    ]);
    expect(fire({ ...tick, target: { kind: 'function', functionId: 'F' }, input }, MINUTE)).toEqual([
      ['F', { at: '2026-11-20T17:44:00Z' }],
    ]);
  });
});
