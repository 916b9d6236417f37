import { expect, it } from 'vitest';
import { virtualTime } from '../../../test/support/agent-api.ts';
import type { Trial } from '../../rules/update-record.ts';
import { trialOutcome } from './trial-watch.ts';

const trial: Trial = { version: '1.1.0', sha256: 'ab', file: 'agent-new.mjs', previous: '', starts: 1 };
const other: Trial = { ...trial, file: 'agent-other.mjs' };
const unreadable = new Error('EIO');

/** `reads` in order; the last one counts for all later reads. */
async function outcomeOf(...reads: readonly (Trial | undefined | Error)[]) {
  const time = virtualTime(0);
  let read = 0;
  const outcome = await trialOutcome(trial, {
    time,
    versions: {
      async trial() {
        const found = reads[Math.min(read, reads.length - 1)];
        read += 1;
        if (found instanceof Error) throw found;
        return found;
      },
    },
  });
  return { outcome, waits: time.waits };
}
const twelve = new Array<number>(12).fill(10_000);

it.each([
  ['the record was removed', undefined],
  ['the record is that of another trial', other],
])('ends as soon as %s', async (_what, now) => {
  expect(await outcomeOf(trial, now)).toEqual({ outcome: { kind: 'ended' }, waits: [10_000, 10_000] });
});

it('is silent when the record is there after two minutes', async () => {
  expect(await outcomeOf(trial)).toEqual({ outcome: { kind: 'silent' }, waits: twelve });
});

it('forgets an unreadable record that can be read later', async () => {
  expect(await outcomeOf(unreadable, undefined)).toEqual({ outcome: { kind: 'ended' }, waits: [10_000, 10_000] });
  expect(await outcomeOf(unreadable, trial)).toEqual({ outcome: { kind: 'silent' }, waits: twelve });
});

it('reads an unreadable record five times at the end', async () => {
  const late = new Array<Error>(12).fill(unreadable);
  const cases = [
    { reads: [...late, trial], outcome: { kind: 'silent' }, lastReads: 1 },
    { reads: [...late, unreadable, unreadable, unreadable, undefined], outcome: { kind: 'ended' }, lastReads: 4 },
    { reads: late, outcome: { kind: 'unreadable', cause: unreadable }, lastReads: 4 },
  ];
  for (const { reads, outcome, lastReads } of cases) {
    expect(await outcomeOf(...reads)).toEqual({ outcome, waits: [...twelve, ...new Array(lastReads).fill(1_000)] });
  }
});
