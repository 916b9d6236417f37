import { Duplex } from 'node:stream';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { settle } from '../../../test/support/stepped-time.ts';
import { openTunnel } from './proxy-tunnel.ts';

/** A connection to a proxy: what was written, and what the test lets it receive. */
function link() {
  let sent = '';
  const duplex = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      sent += chunk.toString();
      done();
    },
  });
  return { duplex, sent: () => sent };
}
const open = (duplex: Duplex, proxy = 'http://proxy.example:3128') =>
  openTunnel(duplex, { proxy: new URL(proxy), authority: 'api.example:443', timeoutMs: 30_000 });

describe('a tunnel', () => {
  it.each([
    ['http://proxy.example:3128', ''],
    ['http://us%40er:p%3Aw@proxy.example:3128', `Proxy-Authorization: Basic ${btoa('us@er:p:w')}\r\n`],
    ['http://user@proxy.example:3128', `Proxy-Authorization: Basic ${btoa('user:')}\r\n`],
  ])('is asked for at %s', async (proxy, authorization) => {
    const { duplex, sent } = link();
    const opened = open(duplex, proxy);
    duplex.push('HTTP/1.1 200 Connection established\r\n\r\n');
    expect(await opened).toBe(duplex);
    expect(sent()).toBe(`CONNECT api.example:443 HTTP/1.1\r\nHost: api.example:443\r\n${authorization}\r\n`);
  });

  it('begins after the headers, whatever pieces they come in', async () => {
    const { duplex } = link();
    const opened = open(duplex);
    duplex.push('HTTP/1.0 204 x\r\nVia: a\r\n');
    duplex.push('\r');
    await settle();
    duplex.push('\nfirst bytes');
    await opened;
    expect(duplex.isPaused()).toBe(true);
    duplex.push(' and more');
    expect(duplex.read().toString()).toBe('first bytes and more');
    expect(['data', 'error', 'close'].map((event) => duplex.listenerCount(event))).toEqual([0, 0, 0]);
  });

  it.each([
    ['HTTP/1.1 407 Proxy Authentication Required\r\n\r\n', 'answered HTTP/1.1 407 Proxy Authentication Required'],
    ['HTTP/1.1 2000 x\r\n\r\n', 'answered HTTP/1.1 2000 x'],
    ['HTTP/2 200\r\n\r\n', 'answered HTTP/2 200'],
    ['SSH-2.0 HTTP/1.1 200\r\n\r\n', 'answered SSH-2.0 HTTP/1.1 200'],
    ['\r\n\r\n', 'the proxy proxy.example:3128 answered '],
    ['x'.repeat(16_385), 'the answer of the proxy proxy.example:3128 is too long'],
  ])('is refused by the answer %.20j', async (answer, message) => {
    const { duplex } = link();
    const opened = open(duplex);
    duplex.push(answer);
    await expect(opened).rejects.toThrow(message);
    expect(duplex.destroyed).toBe(true);
  });

  it('waits for more of an answer of 16 KiB', async () => {
    const { duplex } = link();
    const opened = open(duplex);
    duplex.push(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(16_384 - 20)}`);
    await settle();
    duplex.push('\r\n\r\n');
    expect(await opened).toBe(duplex);
  });

  it('is not opened by a connection that fails or ends', async () => {
    const failing = link();
    const failed = open(failing.duplex);
    failing.duplex.destroy(new Error('ECONNRESET'));
    await expect(failed).rejects.toMatchObject({
      message: 'the proxy proxy.example:3128 did not answer',
      cause: expect.objectContaining({ message: 'ECONNRESET' }),
    });
    const ending = link();
    const ended = open(ending.duplex);
    ending.duplex.destroy();
    await expect(ended).rejects.toThrow('the proxy proxy.example:3128 did not answer');
  });

  it('is given up when its time is over, and an error after that does not end the process', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { duplex } = link();
    const opened = open(duplex);
    const refused = expect(opened).rejects.toThrow('did not answer');
    vi.advanceTimersByTime(29_999);
    expect(duplex.destroyed).toBe(false);
    vi.advanceTimersByTime(1);
    await refused;
    const answered = link();
    const opened2 = open(answered.duplex);
    answered.duplex.push('HTTP/1.1 200 OK\r\n\r\n');
    await opened2;
    expect(vi.getTimerCount()).toBe(0);
    expect(duplex.destroyed).toBe(true);
    duplex.emit('error', new Error('late'));
  });
});
