import { describe, expect, it } from 'vitest';
import { type ChunkTiming, chunkAnswer, chunkDueMs, requestedLogs } from './log-request.ts';

const answered = (status: number, body: unknown) => ({ kind: 'answered', status, body }) as const;
const list = (...items: unknown[]) => answered(200, { kind: 'NodeLogRequestList', items });
const request = { id: 'i', podUid: 'u', container: 'c' };

describe('requests for logs', () => {
  it('are read with their options, times by the clock of the machine', () => {
    const [log] =
      requestedLogs(list({ ...request, follow: true, sinceSeconds: 5, tailLines: 3, limitBytes: 9 }), 60_000) ?? [];
    expect(log).toEqual({
      id: 'i',
      query: {
        podUid: 'u',
        container: 'c',
        follow: true,
        previous: false,
        timestamps: false,
        sinceMs: 55_000,
        tailLines: 3,
        limitBytes: 9,
      },
    });
  });

  it('have one byte more than the API forwards: it reports that there is more', () => {
    const [log] = requestedLogs(list(request), 0) ?? [];
    expect(log?.query.limitBytes).toBe(10 * 1024 * 1024 + 1);
  });

  it('that are malformed are left out, and affect no other', () => {
    const items = [null, 'x', {}, { ...request, id: 5 }, { ...request, tailLines: 'many' }];
    expect(requestedLogs(list(...items), 0)).toHaveLength(1);
  });

  it.each([answered(200, '<html>'), answered(200, {}), answered(404, {}), { kind: 'failed', cause: 'x' } as const])(
    'are not in the answer of another server: %j',
    (answer) => {
      expect(requestedLogs(answer, 0)).toBeUndefined();
    },
  );
});

describe('the answer to a chunk', () => {
  it.each([
    [answered(200, { outcome: 'stored' }), 'stored'],
    [answered(200, { outcome: 'notOpened' }), 'notOpened'],
    [answered(200, { outcome: 'ended' }), 'ended'],
    [answered(200, '<html>'), 'ended'],
    [answered(403, {}), 'ended'],
    [answered(429, {}), 'unclear'],
    [answered(503, {}), 'unclear'],
    [{ kind: 'failed', cause: 'x' } as const, 'unclear'],
  ])('%j means %s', (answer, meaning) => {
    expect(chunkAnswer(answer)).toBe(meaning);
  });
});

describe('the next chunk', () => {
  const due = (timing: Partial<ChunkTiming>): number =>
    chunkDueMs({ sentMs: 0, hasSent: true, unsent: 'none', lastBytes: 0, logs: 1, ...timing });

  it('is due at once for a complete log, soon for the first output, and later for an empty one', () => {
    expect(due({ hasSent: false, unsent: 'complete' })).toBe(0);
    expect(due({ hasSent: false, unsent: 'some' })).toBe(100);
    expect(due({ hasSent: false, unsent: 'none' })).toBe(500);
  });

  it('is due twice per second with output, and every 5 s without', () => {
    expect(due({ unsent: 'some' })).toBe(500);
    expect(due({ unsent: 'none' })).toBe(5_000);
  });

  it('carries at most 1 MB per second of one log, and ten chunks per second of all', () => {
    expect(due({ unsent: 'complete' })).toBe(250);
    expect(due({ unsent: 'some', lastBytes: 256 * 1024 })).toBe(250);
    for (const unsent of ['some', 'complete'] as const) expect(due({ unsent, logs: 10 })).toBe(1_500);
  });
});
