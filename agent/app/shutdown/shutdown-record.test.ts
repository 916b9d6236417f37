import { expect, it } from 'vitest';
import { silentLog, silentMeter } from '../../../test/support/agent-api.ts';
import { settle } from '../../../test/support/stepped-time.ts';
import { ShutdownRecord } from './shutdown-record.ts';

const START = 'kubelet_graceful_shutdown_start_time_seconds';
const END = 'kubelet_graceful_shutdown_end_time_seconds';

function world(content?: string | Error) {
  const gauges: [string, number][] = [];
  const errors: string[] = [];
  const texts: string[] = [];
  const disk: { slow?: Promise<void> } = {};
  const record = new ShutdownRecord(
    {
      async read() {
        if (content instanceof Error) throw content;
        return content;
      },
      async write(text) {
        texts.push(text);
        await disk.slow;
      },
    },
    { ...silentMeter, gauge: (name, value) => gauges.push([name, value]) },
    { ...silentLog, error: (message) => errors.push(message) },
  );
  return { record, gauges, errors, texts, disk };
}

it.each([
  [
    'no end of a shutdown without one',
    '{"startTime":"2023-11-14T22:13:20Z","endTime":"0001-01-01T00:00:00Z"}',
    [[START, 1_700_000_000]],
    [],
  ],
  ['no start that is not there', '{"endTime":"2023-11-14T22:13:20Z"}', [[END, 1_700_000_000]], []],
  ['nothing of a malformed file', '{"startTime":', [], ['The shutdown state file is malformed']],
  ['nothing of a text', '"x"', [], ['The shutdown state file is malformed']],
  ['nothing of null', 'null', [], ['The shutdown state file is malformed']],
  [
    'nothing of a wrong end',
    '{"startTime":"2023-11-14T22:13:20Z","endTime":5}',
    [],
    ['The shutdown state file is malformed'],
  ],
  ['nothing of a file that cannot be read', new Error('EIO'), [], ['Failed to read the shutdown state file']],
])('loads %s', async (_what, content, gauges, errors) => {
  const given = world(content);
  await given.record.load();
  expect([given.gauges, given.errors]).toEqual([gauges, errors]);
});

it('writes the start, and then both times, in order', async () => {
  const { record, gauges, texts, disk } = world();
  const block = Promise.withResolvers<void>();
  disk.slow = block.promise;
  record.started(1_700_000_000_500);
  let isWritten = false;
  const ended = record.ended(1_700_000_010_000).then(() => {
    isWritten = true;
  });
  await settle();
  expect(gauges).toEqual([
    [START, 1_700_000_000],
    [END, 0],
    [END, 1_700_000_010],
  ]);
  expect(texts).toEqual(['{"startTime":"2023-11-14T22:13:20.5Z","endTime":"0001-01-01T00:00:00Z"}']);
  delete disk.slow;
  block.resolve();
  await settle();
  expect(texts[1]).toBe('{"startTime":"2023-11-14T22:13:20.5Z","endTime":"2023-11-14T22:13:30Z"}');
  expect(isWritten).toBe(true);
  await ended;
});
