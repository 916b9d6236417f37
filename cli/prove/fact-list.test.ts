/** The rules of the facts: what each measured value says. */
import { expect, it } from 'vitest';
import { DYNAMODB_FACTS } from './dynamodb-facts.ts';
import { EC2_FACTS } from './ec2-facts.ts';
import { FACTS } from './fact-list.ts';
import { HTTP_FACTS } from './http-facts.ts';
import { LOG_FACTS, type ReportedInvocation } from './log-facts.ts';
import { TIME_FACTS } from './time-facts.ts';
import type { Verdict } from './verdict.ts';

const ALL = { ...DYNAMODB_FACTS, ...EC2_FACTS, ...HTTP_FACTS, ...LOG_FACTS, ...TIME_FACTS };
type FactId = keyof typeof ALL;
type Measured<Id extends FactId> = Parameters<(typeof ALL)[Id]['evaluate']>[0];
type Cases = { readonly [Id in FactId]: readonly (readonly [Verdict['verdict'], Measured<Id>])[] };

const none = { status: 0, isOurs: false };
const throttle = { sent: 240, seconds: 2, requestsPerSecond: 20, burst: 40 };
const minutes = (...numbers: readonly number[]) => ({ firedAtMs: numbers.map((minute) => minute * 60_000 + 17_000) });
const late = (ms: number, missed = 0, claims = 30) => ({
  latenessMs: Array.from({ length: 20 }, () => ms),
  missed,
  claims,
});

const logs = { atInfo: ['info', 'none', 'warn', 'platform.report'], atWarn: ['warn'], reports: [] };
const reports = (...list: readonly ReportedInvocation[]) => ({ atInfo: [], atWarn: [], reports: list });

const CASES: Cases = {
  'dynamodb-write-unit': [
    ['true', { units: 1 }],
    ['false', { units: 2 }],
    ['false', { units: 0.5 }],
    ['unknown', {}],
    ['unknown', { error: 'ThrottlingException' }],
  ],
  'dynamodb-transaction-units': [
    ['true', { units: 4 }],
    ['false', { units: 2 }],
    ['unknown', { error: 'TransactionCanceledException', units: 4 }],
  ],
  'dynamodb-one-winner': [
    ['true', { writers: 20, successes: 1, refused: 19 }],
    ['true', { writers: 20, successes: 1, refused: 19 }],
    ['false', { writers: 20, successes: 2, refused: 18 }],
    ['false', { writers: 20, successes: 2, refused: 3 }],
    ['false', { writers: 20, successes: 0, refused: 20 }],
    ['unknown', { writers: 20, successes: 1, refused: 5 }],
  ],
  'dynamodb-condition-item': [
    ['true', { error: 'ConditionalCheckFailedException', version: '7' }],
    ['false', { error: 'ConditionalCheckFailedException', version: '6' }],
    ['false', { error: 'ConditionalCheckFailedException' }],
    ['false', {}],
    ['unknown', { error: 'ThrottlingException' }],
  ],
  'dynamodb-transaction-conflict': [
    ['true', { transactions: 24, committed: 20, conflicts: 4, stored: 20 }],
    ['false', { transactions: 24, committed: 20, conflicts: 4, stored: 21 }],
    ['false', { transactions: 24, committed: 24, conflicts: 0, stored: 20 }],
    ['unknown', { transactions: 24, committed: 24, conflicts: 0, stored: 24 }],
  ],
  'dynamodb-write-conflict': [
    ['true', { writes: 24, accepted: 20, conflicts: 4, otherErrors: 0 }],
    ['false', { writes: 24, accepted: 24, conflicts: 0, otherErrors: 0 }],
    ['unknown', { writes: 24, accepted: 20, conflicts: 0, otherErrors: 4 }],
  ],
  'dynamodb-cancellation-reasons': [
    ['true', { error: 'TransactionCanceledException', codes: ['None', 'ConditionalCheckFailed'], written: false }],
    ['false', { error: 'TransactionCanceledException', codes: ['None', 'ConditionalCheckFailed'], written: true }],
    ['false', { error: 'TransactionCanceledException', codes: [], written: false }],
    ['false', { codes: [], written: true }],
    ['unknown', { error: 'ThrottlingException', codes: [], written: false }],
  ],
  'dynamodb-item-size': [
    ['true', { error: 'ValidationException' }],
    ['false', {}],
    ['unknown', { error: 'ThrottlingException' }],
  ],
  'dynamodb-transaction-size': [
    ['true', { error: 'ValidationException' }],
    ['false', {}],
    ['unknown', { error: 'ThrottlingException' }],
  ],
  'dynamodb-query-page': [
    ['true', { storedBytes: 1_520_000, items: 4, read: 2, hasMore: true }],
    ['false', { storedBytes: 1_520_000, items: 4, read: 4, hasMore: false }],
    ['false', { storedBytes: 1_520_000, items: 4, read: 2, hasMore: false }],
    ['unknown', { storedBytes: 900_000, items: 4, read: 4, hasMore: false }],
  ],
  'dynamodb-expired-item': [
    ['true', { isReadable: true, readableSeconds: 63 }],
    ['false', { isReadable: false, readableSeconds: 63 }],
  ],
  'ec2-unknown-id': [
    ['true', { error: 'InvalidInstanceID.NotFound', instances: 0 }],
    ['false', { instances: 0 }],
    ['unknown', { error: 'UnauthorizedOperation', instances: 0 }],
    ['unknown', { error: 'RequestLimitExceeded', instances: 0 }],
  ],
  'ec2-malformed-id': [
    ['true', { error: 'InvalidInstanceID.Malformed', instances: 0 }],
    ['false', { error: 'InvalidInstanceID.NotFound', instances: 0 }],
    ['unknown', { error: 'AuthFailure', instances: 0 }],
  ],
  'ec2-unknown-in-filter': [
    ['true', { instances: 0 }],
    ['false', { error: 'InvalidInstanceID.NotFound', instances: 0 }],
    ['false', { instances: 1 }],
    ['unknown', { error: 'UnauthorizedOperation', instances: 0 }],
  ],
  'ec2-filter-values': [
    ['true', { accepted: { instances: 0 }, refused: { error: 'FilterLimitExceeded', instances: 0 } }],
    ['false', { accepted: { instances: 0 }, refused: { instances: 0 } }],
    [
      'false',
      {
        accepted: { error: 'FilterLimitExceeded', instances: 0 },
        refused: { error: 'FilterLimitExceeded', instances: 0 },
      },
    ],
    [
      'unknown',
      {
        accepted: { error: 'UnauthorizedOperation', instances: 0 },
        refused: { error: 'UnauthorizedOperation', instances: 0 },
      },
    ],
  ],
  'ec2-ids-and-pages': [
    ['true', { error: 'InvalidParameterCombination', instances: 0 }],
    ['false', { error: 'InvalidInstanceID.NotFound', instances: 0 }],
    ['unknown', { error: 'UnauthorizedOperation', instances: 0 }],
  ],
  'lambda-cold-start': [
    ['true', { firstMs: 1_200, medianMs: 40 }],
    ['false', { firstMs: 3_001, medianMs: 40 }],
  ],
  'function-clock': [
    ['true', { createdMs: 1_000, dateMs: 2_000 }],
    ['false', { createdMs: 1_000, dateMs: 4_000 }],
    ['false', { createdMs: 4_000, dateMs: 1_000 }],
    ['unknown', { createdMs: Number.NaN, dateMs: 1_000 }],
  ],
  'http-api-header-size': [
    ['true', { status: 431, isOurs: false }],
    ['false', { status: 200, isOurs: true }],
    ['unknown', { status: 429, isOurs: false }],
  ],
  'http-api-body-size': [
    ['true', { status: 413, isOurs: false }],
    ['false', { status: 413, isOurs: true }],
    ['false', { status: 500, isOurs: false }],
    ['unknown', { status: 429, isOurs: false }],
  ],
  'watch-redirect': [
    ['true', { status: 307, endpoint: 'https://api.example', location: 'https://url.example/x' }],
    ['false', { status: 307, endpoint: 'https://api.example', location: 'https://api.example/x' }],
    ['false', { status: 307, endpoint: 'https://api.example', location: 'http://url.example/x' }],
    ['false', { status: 200, endpoint: 'https://api.example', location: '' }],
    ['unknown', { status: 429, endpoint: 'https://api.example', location: '' }],
  ],
  'url-change-delay': [
    ['true', { delaysMs: [200, 1_900, 300] }],
    ['false', { delaysMs: [200, 2_100, 300] }],
    ['unknown', { delaysMs: [] }],
  ],
  'url-held-chunk': [
    ['true', { form: 'Stream', paddingBytes: 0 }],
    ['true', { form: 'Stream', paddingBytes: 1 }],
    ['false', { form: 'Stream', paddingBytes: 16_384 }],
    ['false', { form: 'LongPoll' }],
    ['unknown', {}],
  ],
  'stream-delay': [
    ['true', { delayMs: 700 }],
    ['false', { delayMs: 5_001 }],
    ['false', {}],
  ],
  'http-api-stopped-function': [
    ['true', { status: 503, isOurs: false }],
    ['false', { status: 503, isOurs: true }],
    ['false', { status: 500, isOurs: false }],
    ['unknown', { ...none, refused: 'below its minimum value' }],
    ['unknown', { status: 429, isOurs: false }],
  ],
  'url-stopped-function': [
    ['true', { status: 429, isOurs: false }],
    ['false', { status: 200, isOurs: true }],
    ['false', { status: 502, isOurs: false }],
    ['unknown', { ...none, refused: 'below its minimum value' }],
  ],
  'url-abandoned-stream': [
    ['true', { timeoutSeconds: 15, statusAfter: 429, freeAfterSeconds: 14 }],
    ['false', { timeoutSeconds: 15, statusAfter: 200, freeAfterSeconds: 0 }],
    ['false', { timeoutSeconds: 15, statusAfter: 429, freeAfterSeconds: 2 }],
    ['unknown', { timeoutSeconds: 15, statusAfter: 429 }],
    ['unknown', { timeoutSeconds: 15, statusAfter: 0, refused: 'below its minimum value' }],
  ],
  'http-api-throttle': [
    ['true', { ...throttle, accepted: 80, throttled: 160 }],
    ['true', { ...throttle, accepted: 120, throttled: 120 }],
    ['false', { ...throttle, accepted: 121, throttled: 119 }],
    ['false', { ...throttle, accepted: 240, throttled: 0 }],
    ['true', { ...throttle, seconds: 10, accepted: 239, throttled: 1 }],
    ['unknown', { ...throttle, seconds: 10, accepted: 240, throttled: 0 }],
  ],
  'lambda-log-level': [
    ['true', logs],
    ['false', { ...logs, atWarn: ['info', 'warn'] }],
    ['false', { ...logs, atInfo: ['none', 'warn'] }],
    ['unknown', { ...logs, atWarn: [] }],
    ['unknown', { ...logs, atInfo: ['platform.report'] }],
  ],
  'lambda-log-without-level': [
    ['true', logs],
    ['false', { ...logs, atWarn: ['none', 'warn'] }],
    ['false', { ...logs, atInfo: ['info', 'warn'] }],
    ['unknown', { ...logs, atWarn: [] }],
  ],
  'lambda-system-log-level': [
    ['true', logs],
    ['true', { ...logs, atWarn: ['warn', 'platform.report of timeout'] }],
    ['false', { ...logs, atWarn: ['warn', 'platform.report'] }],
    ['false', { ...logs, atWarn: ['platform.start', 'warn'] }],
    ['unknown', { ...logs, atInfo: ['info', 'none', 'warn'] }],
    ['unknown', { ...logs, atWarn: [] }],
  ],
  'lambda-billed-duration': [
    ['true', reports({ durationMs: 1.2, billedMs: 2 })],
    // The duration was 3.001 ms.
    ['true', reports({ durationMs: 3, billedMs: 4 })],
    ['false', reports({ durationMs: 1.2, billedMs: 100 })],
    ['false', reports({ durationMs: 1.2, billedMs: 1.2 })],
    ['false', reports({ durationMs: 1.2, billedMs: 2 }, { durationMs: 9.5, billedMs: 8 })],
    ['unknown', reports({ durationMs: 1.2, billedMs: 140, initMs: 138.1 })],
  ],
  'lambda-billed-init': [
    ['true', reports({ durationMs: 1.2, billedMs: 140, initMs: 138.1 })],
    ['false', reports({ durationMs: 1.2, billedMs: 2, initMs: 138.1 })],
    ['unknown', reports({ durationMs: 1.2, billedMs: 2 })],
  ],
  'sqs-delay': [
    ['true', { sent: 20, latenessMs: late(300).latenessMs }],
    ['true', { sent: 20, latenessMs: late(-500).latenessMs }],
    ['false', { sent: 20, latenessMs: late(-501).latenessMs }],
    ['false', { sent: 20, latenessMs: late(2_001).latenessMs }],
    ['false', { sent: 20, latenessMs: [...late(300).latenessMs, -900] }],
    ['unknown', { sent: 20, latenessMs: [300, 300] }],
    ['unknown', { sent: 0, latenessMs: [] }],
  ],
  'schedule-minute': [
    ['true', minutes(1, 2, 3, 4)],
    ['true', minutes(1, 2, 2, 3)],
    ['false', minutes(1, 2, 4)],
    ['unknown', minutes(1, 2)],
    ['unknown', minutes()],
  ],
  'tick-lateness': [
    ['true', late(400)],
    ['true', late(400, 2)],
    ['false', late(400, 3)],
    ['false', late(2_501)],
    ['unknown', { latenessMs: [], missed: 0, claims: 9 }],
  ],
  'tick-chain': [
    ['true', late(400)],
    ['false', late(400, 6)],
    ['unknown', late(400, 0, 16)],
    ['unknown', { latenessMs: [], missed: 0, claims: 30 }],
  ],
};

const cases = Object.entries(CASES).flatMap(([id, list]) =>
  list.map(([verdict, measured]) => ({ id: id as FactId, verdict, measured: measured as never })),
);

it.each(cases)('$id is $verdict for $measured', ({ id, verdict, measured }) => {
  expect(ALL[id].evaluate(measured)).toMatchObject({ verdict, reason: expect.stringMatching(/\S/) });
});

it('lists each fact once, and no two of them have one sentence', () => {
  expect(FACTS.map(({ id }) => id).toSorted()).toEqual(Object.keys(ALL).toSorted());
  expect(new Set(FACTS.map(({ sentence }) => sentence)).size).toBe(FACTS.length);
  expect(FACTS.length).toBeGreaterThanOrEqual(25);
});
