import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { frame, spdyHeaders } from '../../test/support/spdy-client.ts';
import { spdyForwards } from './spdy-clients.ts';

const RST_STREAM = 0x80_03_00_03;

it('forgets a stream that is reset before the other one of its connection to a port is open', async () => {
  const wire = new PassThrough();
  const transport = {
    received: wire,
    closed: new Promise<void>(() => {}),
    write: async () => true,
    end: () => void wire.end(),
  };
  const forwards = spdyForwards(transport, new AbortController().signal);
  const headers = spdyHeaders();
  const open = async (id: number, streamtype: string) =>
    wire.write(await headers.synStream(id, { streamtype, port: '80', requestid: '0' }));
  await open(1, 'error');
  wire.write(frame(RST_STREAM, Buffer.from('0000000100000005', 'hex')));
  await open(3, 'error');
  await open(5, 'data');
  expect((await forwards.next()).value?.port).toBe(80);
  await forwards.return(undefined);
});
