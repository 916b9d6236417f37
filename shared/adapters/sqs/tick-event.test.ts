import type { SQSEvent } from 'aws-lambda';
import { describe, expect, it } from 'vitest';
import { FAILED_TICKS } from '../../domain/functions/tick-metrics.ts';
import { handleTicks, slotOfMessage } from './tick-event.ts';

const eventOf = (...bodies: string[]) =>
  ({ Records: bodies.map((body, index) => ({ messageId: `m${index}`, body })) }) as SQSEvent;
const tickOf = (offsetSeconds: number) => JSON.stringify({ scheduledAt: '2026-01-01T00:01:00Z', offsetSeconds });
const MINUTE_SLOT = Date.UTC(2026, 0, 1, 0, 1) / 5_000;

const measured: string[] = [];
const meter = { add: (name: string) => measured.push(name) };

describe('tick messages', () => {
  it('name their slot by scheduled minute and offset', () => {
    expect(slotOfMessage(tickOf(0), 5)).toBe(MINUTE_SLOT);
    expect(slotOfMessage(tickOf(55), 5)).toBe(MINUTE_SLOT + 11);
  });

  it.each([
    '',
    'tick',
    'null',
    '{}',
    '{"scheduledAt":"soon","offsetSeconds":0}',
    '{"scheduledAt":"2026-01-01T00:01:00Z"}',
  ])('are logged and dropped if malformed: %s', async (body) => {
    const errors: string[] = [];
    const log = { debug() {}, info() {}, warn() {}, error: (message: string) => errors.push(message) };
    const ran: number[] = [];
    const runTick = async (slot: number) => ran.push(slot);
    expect(await handleTicks(eventOf(body, tickOf(5)), { periodSeconds: 5, log, meter, runTick })).toEqual({
      batchItemFailures: [],
    });
    expect(ran).toEqual([MINUTE_SLOT + 1]);
    expect(errors).toEqual(['a tick message cannot be read']);
  });

  it('are delivered again if their tick failed, and only those', async () => {
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const runTick = async (slot: number) => {
      if (slot === MINUTE_SLOT) throw new Error('no');
    };
    expect(await handleTicks(eventOf(tickOf(0), tickOf(5)), { periodSeconds: 5, log, meter, runTick })).toEqual({
      batchItemFailures: [{ itemIdentifier: 'm0' }],
    });
    expect(measured).toEqual([FAILED_TICKS]);
  });
});
