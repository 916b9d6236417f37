import { expect, it } from 'vitest';
import { SteppedTime } from '../../test/support/stepped-time.ts';
import { EventQueue } from './event-queue.ts';

const START_MS = 1_700_000_000_000;
const subjectOf = (uid: string) => ({ kind: 'Pod', namespace: 'ns', name: `pod-${uid}`, uid }) as const;
const event = { type: 'Normal', reason: 'Started', message: 'started' } as const;

function world() {
  const time = new SteppedTime(START_MS);
  return { time, queue: new EventQueue(time) };
}

it('adds an event with its times, and counts a repetition as the newest', async () => {
  const { time, queue } = world();
  expect([queue.isEmpty(), queue.waiting()]).toEqual([true, []]);
  await time.pass(5_000);
  expect(queue.add(subjectOf('a'), event)).toBe('added');
  const [queued] = queue.waiting();
  expect(queued).toEqual({
    name: expect.stringMatching(/^pod-a\.[0-9a-f]+$/),
    subject: subjectOf('a'),
    event,
    firstAtMs: START_MS + 5_000,
    lastAtMs: START_MS + 5_000,
    recordedAtMs: 5_000,
    count: 1,
    isCreated: false,
    failedAttempts: 0,
  });
  await time.pass(1_000);
  expect(queue.add(subjectOf('a'), event)).toBe('added');
  expect(queue.waiting()).toHaveLength(1);
  expect(queued).toMatchObject({
    count: 2,
    firstAtMs: START_MS + 5_000,
    lastAtMs: START_MS + 6_000,
    recordedAtMs: 6_000,
  });
});

it.each([
  ['another object', subjectOf('b'), {}],
  ['another type', subjectOf('a'), { type: 'Warning' as const }],
  ['another reason', subjectOf('a'), { reason: 'Stopped' }],
  ['another message', subjectOf('a'), { message: 'stopped' }],
])('does not count %s as a repetition', (_what, subject, more) => {
  const { queue } = world();
  queue.add(subjectOf('a'), event);
  queue.add(subject, { ...event, ...more });
  const waiting = queue.waiting();
  expect(waiting.map(({ count }) => count)).toEqual([1, 1]);
  expect(new Set(waiting.map(({ name }) => name)).size).toBe(2);
});

it('adds to an event for fifty minutes after its last repetition, whether it was sent or not', async () => {
  const { time, queue } = world();
  queue.add(subjectOf('a'), event);
  const [first] = queue.waiting();
  if (first === undefined) throw new Error('no event');
  queue.remove(first);
  expect(queue.isEmpty()).toBe(true);
  await time.pass(2_999_999);
  queue.add(subjectOf('a'), event);
  expect(queue.waiting()).toEqual([first]);
  expect(first.count).toBe(2);
  await time.pass(3_000_000);
  queue.add(subjectOf('a'), event);
  expect(queue.waiting().map(({ count }) => count)).toEqual([2, 1]);
});

it('cuts a message, so two that differ after the cut are one', () => {
  const { queue } = world();
  for (const end of ['x', 'y']) queue.add(subjectOf('a'), { ...event, message: `${'m'.repeat(1_024)}${end}` });
  expect(queue.waiting().map(({ event: { message }, count }) => [message.length, count])).toEqual([[1_024, 2]]);
});

it('refuses an event above 200 that wait, and still counts repetitions', () => {
  const { queue } = world();
  for (let index = 0; index < 200; index += 1) expect(queue.add(subjectOf(`${index}`), event)).toBe('added');
  expect(queue.add(subjectOf('more'), event)).toBe('queueFull');
  expect(queue.add(subjectOf('7'), event)).toBe('added');
  const waiting = queue.waiting();
  expect([waiting.length, waiting[7]?.count]).toEqual([200, 2]);
  queue.remove(waiting[0]!);
  expect(queue.add(subjectOf('more'), event)).toBe('added');
});

it('forgets the event that was not repeated for longest, above 500', () => {
  const { queue } = world();
  const countOf = (uid: string): number | undefined => {
    queue.add(subjectOf(uid), event);
    const found = queue.waiting().at(-1);
    if (found !== undefined) queue.remove(found);
    return found?.count;
  };
  for (let index = 0; index < 500; index += 1) countOf(`${index}`);
  // Now the oldest is `1`.
  expect(countOf('0')).toBe(2);
  expect(countOf('more')).toBe(1);
  expect([countOf('0'), countOf('2'), countOf('1')]).toEqual([3, 2, 1]);
});

it('drops the events of one object above 25, and those of no other', async () => {
  const { time, queue } = world();
  const results = Array.from({ length: 26 }, (_, index) =>
    queue.add(subjectOf('a'), { ...event, message: `${index}` }),
  );
  expect(results.slice(24)).toEqual(['added', 'droppedAsSpam']);
  expect(queue.add(subjectOf('b'), event)).toBe('added');
  await time.pass(300_000);
  expect([queue.add(subjectOf('a'), event), queue.add(subjectOf('a'), event)]).toEqual(['added', 'droppedAsSpam']);
});
