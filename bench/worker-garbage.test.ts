import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { openWorkerGarbage } from './worker-garbage.ts';

const MADE = 2 ** 25;

it('leaves of a worker heap what is in use', async () => {
  const makesGarbage = new Worker(
    `const { parentPort } = require('node:worker_threads');
     let made = Array.from({ length: ${MADE / 64} }, (_, at) => ({ at, text: 'garbage ' + at }));
     made = undefined;
     parentPort.postMessage('made');
     parentPort.on('message', () => {});`,
    { eval: true },
  );
  try {
    await once(makesGarbage, 'message');
    const { collect } = await openWorkerGarbage();
    const before = (await makesGarbage.getHeapStatistics()).used_heap_size;
    await collect();
    const after = (await makesGarbage.getHeapStatistics()).used_heap_size;
    expect(before - after).toBeGreaterThan(MADE / 4);
  } finally {
    await makesGarbage.terminate();
  }
});

it('does not wait for a worker that ended', async () => {
  const ended = new Worker('', { eval: true });
  const { collect } = await openWorkerGarbage();
  await once(ended, 'exit');
  await collect();
});
