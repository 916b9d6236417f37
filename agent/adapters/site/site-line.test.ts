import { Duplex } from 'node:stream';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { SITE_LINE_BYTES_MAX } from '../../rules/site-message.ts';
import { openSiteLine } from './site-line.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** A line over a connection. `isReading`: the other end reads. */
function opened({ head = '', isReading = true } = {}) {
  const sent: string[] = [];
  const received: string[] = [];
  let closes = 0;
  const socket = new Duplex({
    read() {},
    write(piece: Buffer, _, done) {
      sent.push(piece.toString());
      if (isReading) done();
    },
  });
  const line = openSiteLine(socket, Buffer.from(head), '192.0.2.1', () => ({
    received: (text) => received.push(text),
    closed: () => {
      closes += 1;
    },
  }));
  const arrive = async (bytes: string | Buffer): Promise<void> => {
    socket.push(Buffer.from(bytes));
    await settled();
  };
  return { line, socket, sent, received, arrive, closes: () => closes };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('a line of a site', () => {
  it('is received whole, however it arrives, and what was read before it too', async () => {
    const { received, arrive, line } = opened({ head: 'on' });
    await settled();
    expect([received, line.address]).toEqual([[], '192.0.2.1']);
    await arrive('e\ntwo\n\nth');
    expect(received).toEqual(['one', 'two', '']);
    const [first, second] = [Buffer.from('rée\n').subarray(0, 2), Buffer.from('rée\n').subarray(2)];
    await arrive(first);
    await arrive(second);
    expect(received.at(-1)).toBe('thrée');
  });

  it.each([
    ['', true],
    ['\n', true],
    ['x', false],
    ['x\n', false],
  ])('ends the connection beyond its length: with %j it stays: %s', async (more, stays) => {
    const { socket, received, arrive } = opened();
    await arrive(`${'x'.repeat(SITE_LINE_BYTES_MAX)}${more}`);
    expect(socket.destroyed).toBe(!stays);
    expect(received).toHaveLength(stays && more !== '' ? 1 : 0);
  });

  it('ends the connection beyond a hundred in a second', async () => {
    const now = vi.spyOn(performance, 'now').mockReturnValue(5_000);
    const { socket, received, arrive } = opened();
    await arrive('x\n'.repeat(100));
    now.mockReturnValue(6_000);
    await arrive('x\n'.repeat(100));
    expect([socket.destroyed, received.length]).toEqual([false, 200]);
    now.mockReturnValue(6_999);
    await arrive('x\n');
    expect([socket.destroyed, received.length]).toEqual([true, 200]);
  });

  it('is sent with its end, unless the connection has ended', () => {
    const { line, sent, socket } = opened();
    line.send('a');
    socket.end();
    line.send('b');
    expect(socket.errored).toBeNull();
    socket.destroy();
    line.send('c');
    expect(sent).toEqual(['a\n']);
  });

  it('ends a connection if its other end does not read', () => {
    const { line, socket } = opened({ isReading: false });
    line.send('x'.repeat(65_535));
    expect(socket.destroyed).toBe(false);
    line.send('');
    expect(socket.destroyed).toBe(true);
  });
});

describe('the connection of a site', () => {
  it('is closed once, by either end or by a fault', async () => {
    for (const end of ['push', 'destroy', 'fault', 'close'] as const) {
      const { line, socket, closes } = opened();
      if (end === 'push') socket.push(null);
      if (end === 'destroy') socket.destroy();
      if (end === 'fault') socket.emit('error', new Error('reset'));
      if (end === 'close') void line.close().then(() => expect(closes()).toBe(1));
      if (end === 'close') socket.push(null);
      for (let turn = 0; turn < 5; turn += 1) await settled();
      expect([end, closes(), socket.destroyed]).toEqual([end, 1, true]);
      await line.close();
      expect(closes()).toBe(1);
    }
  });

  it('does not wait longer than half a second for its other end to close', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { line, socket, closes } = opened();
    const closing = line.close();
    vi.advanceTimersByTime(499);
    expect([socket.writableEnded, socket.destroyed]).toEqual([true, false]);
    vi.advanceTimersByTime(1);
    await closing;
    expect([socket.destroyed, closes(), vi.getTimerCount()]).toEqual([true, 1, 0]);
  });
});
