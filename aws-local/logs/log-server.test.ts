import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { signedPost } from '../../shared/aws/signed-post.ts';
import { type LogServer, startLogServer } from './log-server.ts';

let folder: string;
let server: LogServer;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nk-logs-'));
  server = await startLogServer(folder, () => 'audit.log');
});
afterEach(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

async function call(action: string, input: object) {
  const { endpoint } = server;
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  const post = signedPost(
    { region: 'us-east-1', credentials, endpoint },
    { service: 'logs', target: `Logs_20140328.${action}`, timeoutMs: 5_000, version: '1.1' },
  );
  const { status, body } = await post(JSON.stringify(input), Date.now());
  return { status, body: JSON.parse(body) };
}

it('answers the events of a log group by their time, page by page', async () => {
  const logEvents = ['a', 'b'].map((message, index) => ({ timestamp: index + 2, message }));
  await call('PutLogEvents', { logGroupName: 'g', logStreamName: 's', logEvents });
  server.groups.add('g', { timestamp: 1, message: 'first' });
  const first = await call('FilterLogEvents', { logGroupName: 'g', limit: 2 });
  expect(first.body).toMatchObject({ events: [{ message: 'first' }, { message: 'a' }], nextToken: '2' });
  const { body } = await call('FilterLogEvents', { logGroupName: 'g', limit: 2, nextToken: first.body.nextToken });
  expect(body).toEqual({ events: [{ timestamp: 3, message: 'b' }], searchedLogStreams: [] });
  expect(readFileSync(join(folder, 'audit.log'), 'utf8')).toBe('a\nb\n');
});

it('knows a log group before its first event, and no other one', async () => {
  server.groups.create('g');
  expect((await call('FilterLogEvents', { logGroupName: 'g' })).body).toMatchObject({ events: [] });
  expect(await call('FilterLogEvents', { logGroupName: 'h' })).toEqual({
    status: 400,
    body: { __type: 'ResourceNotFoundException' },
  });
});

it.each([[{ filterPattern: 'x' }], [{ limit: 0 }], [{ nextToken: 'x' }], [{ logGroupName: 7 }]])(
  'refuses what it would answer in another way: %o',
  async (input) => {
    server.groups.create('g');
    expect((await call('FilterLogEvents', { logGroupName: 'g', ...input })).body).toEqual({
      __type: 'InvalidParameterException',
    });
  },
);

it.each([
  ['out of order', [2, 1], 'x'],
  ['without a text', [1], ''],
  ['above 1 MB together, 26 bytes for each', [1, 1], 'x'.repeat(524_288 - 25)],
])('refuses events %s, as AWS does', async (_what, times, message) => {
  const logEvents = times.map((timestamp) => ({ timestamp, message }));
  const input = { logGroupName: 'g', logStreamName: 's', logEvents };
  expect(await call('PutLogEvents', input)).toMatchObject({ body: { __type: 'InvalidParameterException' } });
  expect(server.groups.events('g')).toBeUndefined();
});

it('keeps the last events of a group', () => {
  for (let index = 0; index < 5_000; index += 1) server.groups.add('g', { timestamp: index, message: `${index}` });
  const events = server.groups.events('g') ?? [];
  expect(events.length).toBeLessThanOrEqual(2_000);
  expect(events.at(-1)).toEqual({ timestamp: 4_999, message: '4999' });
});
