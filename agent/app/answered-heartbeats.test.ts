import { expect, it } from 'vitest';
import { silentLog } from '../../test/support/agent-api.ts';
import { memoryHeartbeatFile } from '../../test/support/memory-heartbeat-file.ts';
import { SteppedTime, settle } from '../../test/support/stepped-time.ts';
import type { HeartbeatFile } from '../ports/heartbeat-file.ts';
import { AnsweredHeartbeats } from './answered-heartbeats.ts';

function world(file: HeartbeatFile = memoryHeartbeatFile()) {
  const time = new SteppedTime(1_700_000_000_000);
  const warnings: unknown[] = [];
  const log = { ...silentLog, warn: (message: string, fields: unknown) => void warnings.push([message, fields]) };
  return { time, warnings, heartbeats: new AnsweredHeartbeats({ time, file, log }) };
}

it('while none is known, time counts as over after 10 s, which a set clock does not shorten', async () => {
  const { time, heartbeats } = world();
  await time.pass(9_999);
  time.setClock(86_400_000);
  expect(heartbeats.silentMs()).toBe(0);
  await time.pass(1);
  expect(heartbeats.silentMs()).toBe(Number.POSITIVE_INFINITY);
});

it('the longest silence is that before the first answer too, and never forgotten', async () => {
  const file = memoryHeartbeatFile();
  const { time, heartbeats } = world(file);
  file.kept = heartbeats.now();
  await heartbeats.read();
  await time.pass(60_000);
  expect(heartbeats.longestSilenceMs()).toBe(60_000);
  heartbeats.answered(heartbeats.now());
  await time.pass(10_000);
  expect([heartbeats.silentMs(), heartbeats.longestSilenceMs()]).toEqual([10_000, 60_000]);
});

it('the newest one is in the file after a slow write, and each one is written once', async () => {
  const slow = Promise.withResolvers<void>();
  const written: number[] = [];
  const { time, heartbeats } = world({
    read: async () => undefined,
    async write({ uptimeMs }) {
      await slow.promise;
      written.push(uptimeMs);
    },
  });
  const sent = [];
  for (let beat = 0; beat < 3; beat += 1) {
    heartbeats.answered(heartbeats.now());
    sent.push(time.uptimeMs());
    void heartbeats.keep();
    await time.pass(1_000);
  }
  slow.resolve();
  await settle();
  await heartbeats.keep();
  expect(written).toEqual([sent[0], sent[2]]);
});

it('a file that cannot be used is logged once, and nothing fails', async () => {
  const fail = async () => {
    throw new Error('read-only');
  };
  const { warnings, heartbeats } = world({ read: fail, write: fail });
  await heartbeats.read();
  for (let beat = 0; beat < 3; beat += 1) {
    heartbeats.answered({ ...heartbeats.now() });
    await heartbeats.keep();
  }
  expect(warnings).toEqual([
    ['the last answered heartbeat cannot be read', { why: 'read-only' }],
    ['the last answered heartbeat cannot be kept', { why: 'read-only' }],
  ]);
});
