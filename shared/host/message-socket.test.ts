import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { MessageSocket } from './message-socket.ts';

class Socket extends EventEmitter {
  isPaused = false;
  pause(): void {
    this.isPaused = true;
  }
  resume(): void {
    this.isPaused = false;
  }
}

it('stops reading while empty messages wait, and continues when they are read', async () => {
  const raw = new Socket();
  const messages = new MessageSocket(raw as unknown as WebSocket)[Symbol.asyncIterator]();
  let count = 0;
  for (; !raw.isPaused && count < 100_000; count += 1) raw.emit('message', Buffer.alloc(0));
  expect(count).toBeLessThan(1_000);
  for (let read = 0; read < count; read += 1) await messages.next();
  expect(raw.isPaused).toBe(false);
});
