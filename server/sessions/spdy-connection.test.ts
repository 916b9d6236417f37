import { PassThrough } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { frame, spdyHeaders } from '../../test/support/spdy-client.ts';
import { until } from '../../test/support/until.ts';
import type { ByteTransport } from './byte-transport.ts';
import { SpdyConnection } from './spdy-connection.ts';
import { FRAME_BYTES_MAX } from './spdy-frames.ts';

const FIN = 1;
const PING = 0x80_03_00_06;
const RST_STREAM = 0x80_03_00_03;

function connected(streamsMax = 4) {
  const wire = new PassThrough({ highWaterMark: 1_000_000 });
  const sent: string[] = [];
  let isEnded = false;
  const transport: ByteTransport = {
    received: wire,
    closed: new Promise((resolve) => wire.once('close', () => resolve())),
    async write(bytes) {
      sent.push(Buffer.from(bytes).toString('hex'));
      return true;
    },
    end() {
      isEnded = true;
      wire.destroy();
    },
  };
  const connection = new SpdyConnection(transport, streamsMax);
  return { wire, sent, connection, hasEnded: () => isEnded, headers: spdyHeaders() };
}

const within = { withinMs: 30_000, everyMs: 1 };

async function opened(client: ReturnType<typeof connected>, id: number, headers: Record<string, string> = {}) {
  client.wire.write(await client.headers.synStream(id, { streamtype: 'data', ...headers }));
  const { value } = await client.connection.streams().next();
  return value!;
}

describe('a connection of SPDY', () => {
  it('opens streams, whatever parts the bytes arrive in', async () => {
    const client = connected();
    const bytes = Buffer.concat([
      await client.headers.synStream(1, { streamType: 'error' }),
      await client.headers.synStream(3, { streamType: 'data', port: '80' }),
      frame(3, Buffer.from('hello')),
      frame(3, Buffer.from(' you'), FIN),
    ]);
    for (const byte of bytes) client.wire.write(Buffer.of(byte));
    const streams = client.connection.streams();
    const [error, data] = [(await streams.next()).value!, (await streams.next()).value!];
    expect([error.id, ...error.headers.values()]).toEqual([1, 'error']);
    expect([data.id, ...data.headers.values()]).toEqual([3, 'data', '80']);
    let text = '';
    for await (const part of data.data()) text += part.toString();
    expect(text).toBe('hello you');
    // The second reply continues the zlib stream of the first.
    expect(client.sent).toEqual([
      '80030002000000180000000178bbe3c6a7c2000400fbff00000000000000ffff',
      '800300020000001200000003000400fbff00000000000000ffff',
    ]);
  });

  it('answers pings, and ignores settings and windows', async () => {
    const client = connected();
    client.wire.write(frame(0x80_03_00_04, Buffer.alloc(12)));
    client.wire.write(frame(0x80_03_00_09, Buffer.alloc(8)));
    client.wire.write(frame(PING, Buffer.from('00000007', 'hex')));
    await until(() => client.sent.length > 0, within);
    expect(client.sent).toEqual(['800300060000000400000007']);
  });

  it('reads no further while the data of a stream wait, and continues', async () => {
    const client = connected();
    const stream = await opened(client, 1);
    for (let part = 0; part < 8; part += 1) client.wire.write(frame(1, Buffer.alloc(64 * 1024)));
    client.wire.write(frame(PING, Buffer.from('00000009', 'hex')));
    await turn();
    await turn();
    expect(client.sent).toHaveLength(1);
    const data = stream.data();
    for (let part = 0; part < 8; part += 1) await data.next();
    await until(() => client.sent.length === 2, within);
  });

  it('reads no further while many short data of a stream wait', async () => {
    const client = connected();
    await opened(client, 1);
    client.wire.write(Buffer.concat(Array.from({ length: 2_000 }, () => frame(1, Buffer.alloc(1)))));
    client.wire.write(frame(PING, Buffer.from('00000009', 'hex')));
    for (let turns = 0; turns < 20; turns += 1) await turn();
    expect(client.sent).toHaveLength(1);
  });

  it('keeps no stream that is reset before anybody has read of it', async () => {
    const client = connected();
    for (let id = 1; id < 100; id += 2) {
      const reset = Buffer.from(`${id.toString(16).padStart(8, '0')}00000005`, 'hex');
      client.wire.write(Buffer.concat([await client.headers.synStream(id, {}), frame(RST_STREAM, reset)]));
    }
    client.wire.write(frame(PING, Buffer.from('00000009', 'hex')));
    await until(() => client.sent.includes('800300060000000400000009'), within);
    expect((await opened(client, 101)).id).toBe(101);
  });

  it('continues for the others when a stream with waiting data is given up', async () => {
    const client = connected();
    const stream = await opened(client, 1);
    for (let part = 0; part < 4; part += 1) client.wire.write(frame(1, Buffer.alloc(64 * 1024)));
    await turn();
    stream.stopReading();
    client.wire.write(frame(PING, Buffer.from('00000009', 'hex')));
    await until(() => client.sent.includes('800300060000000400000009'), within);
  });

  it('refuses more streams than it may have, until others have ended', async () => {
    const client = connected(1);
    const stream = await opened(client, 1);
    client.wire.write(await client.headers.synStream(3, {}));
    await until(() => client.sent.some((each) => each.startsWith('80030003000000080000000300000003')), within);
    client.wire.write(frame(RST_STREAM, Buffer.from('0000000100000005', 'hex')));
    await stream.gone;
    expect((await opened(client, 5)).id).toBe(5);
  });

  it.each([
    ['a frame that is too long', () => frame(1, Buffer.alloc(FRAME_BYTES_MAX + 1))],
    ['a frame of another version', () => frame(0x80_02_00_06, Buffer.alloc(4))],
    ['a frame that is too short', () => frame(PING, Buffer.alloc(3))],
    ['headers that are not compressed', () => frame(0x80_03_00_01, Buffer.alloc(40, 7))],
    ['an even stream', () => spdyHeaders().synStream(2, {})],
    ['headers of 64 MB in 64 KB', () => spdyHeaders().synStream(1, { bomb: 'x'.repeat(64 * 1024 * 1024) })],
    ['headers of nothing', () => frame(0x80_03_00_01, Buffer.alloc(10))],
  ])('ends after %s', async (_what, bytes) => {
    const client = connected();
    client.wire.write(await bytes());
    await client.connection.closed;
    expect(client.hasEnded()).toBe(true);
    expect((await client.connection.streams().next()).done).toBe(true);
  });

  it('ends its streams when the client has left', async () => {
    const client = connected();
    const stream = await opened(client, 1);
    client.wire.end();
    await stream.gone;
    expect((await stream.data().next()).done).toBe(true);
    expect(await stream.write(Buffer.from('x'))).toBe(false);
  });
});
