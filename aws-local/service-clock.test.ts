import { afterEach, expect, it, vi } from 'vitest';
import { LocalQueue } from './queues/queue.ts';
import { serviceNowMs } from './service-clock.ts';

afterEach(() => void vi.useRealTimers());

it.each([3_600, -3_600])("a step of the machine's clock by %i s neither expires nor hides a message", (seconds) => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const settings = {
    name: 'q',
    delaySeconds: 0,
    visibilityTimeoutSeconds: 40,
    retentionSeconds: 60,
  };
  const queue = new LocalQueue(settings);
  queue.send('the next tick', serviceNowMs());
  vi.setSystemTime(Date.now() + seconds * 1_000);
  expect(queue.receive(1, serviceNowMs() + 1).map(({ body }) => body)).toEqual(['the next tick']);
});
