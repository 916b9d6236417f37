import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { leanUpdater } from './lean-updater.ts';

let server: Server | undefined;
afterEach(async () => {
  server?.closeAllConnections();
  await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
  server = undefined;
});

/** The fault of an update that the service answers like this. */
async function faultOf(status: number, body: string): Promise<unknown> {
  server = createServer((incoming, answer) => {
    incoming.resume();
    incoming.on('end', () => answer.writeHead(status).end(body));
  });
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve));
  const updater = leanUpdater({
    connection: {
      region: 'eu-central-1',
      endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
    },
    tables: { health: 'health' },
    nowMs: () => 0,
    pause: async () => {},
  });
  try {
    await updater.write({ kind: 'update', key: { table: 'health', pk: 's01', sk: 'n1' }, set: { v: 1 } });
    return undefined;
  } catch (fault) {
    return fault;
  } finally {
    updater.close();
  }
}

it.each([
  [500, 'no JSON', 'InternalServerError'],
  [500, '{}', 'InternalServerError'],
  [503, '{}', 'InternalServerError'],
  [499, 'no JSON', 'SerializationException'],
  [499, '{}', 'Status499'],
  [404, '{}', 'Status404'],
  [200, 'no JSON', 'SerializationException'],
])('an answer without the name of an error is named by its status: %i %s', async (status, body, name) => {
  expect(await faultOf(status, body)).toMatchObject({ name: 'StoreFault', cause: { name } });
});
