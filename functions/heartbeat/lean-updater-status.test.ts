import { createServer, type Server } from 'node:http';
import { afterEach, expect, it } from 'vitest';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { type LeanUpdaterOptions, leanUpdater } from './lean-updater.ts';

let server: Server | undefined;
afterEach(async () => {
  server?.closeAllConnections();
  await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
  server = undefined;
});

const WRITE = { kind: 'update', key: { table: 'health', pk: 's01', sk: 'n1' }, set: { v: 1 } } as const;

async function updaterOf(listener: Server, options: Partial<LeanUpdaterOptions> = {}) {
  const port = await listenOnLoopback(listener);
  return leanUpdater({
    connection: {
      region: 'eu-central-1',
      endpoint: `http://127.0.0.1:${port}`,
      credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
    },
    tables: { health: 'health' },
    nowMs: () => 0,
    pause: async () => {},
    ...options,
  });
}

/** The fault of an update after this response. */
async function faultOf(status: number, body: string): Promise<unknown> {
  server = createServer((incoming, answer) => {
    incoming.resume();
    incoming.on('end', () => answer.writeHead(status).end(body));
  });
  const updater = await updaterOf(server);
  try {
    await updater.write(WRITE);
    return undefined;
  } catch (fault) {
    return fault;
  } finally {
    updater.close();
  }
}

it('repeats a request after a server error of any name', async () => {
  let requests = 0;
  server = createServer((incoming, answer) => {
    requests += 1;
    const status = requests === 1 ? 500 : 200;
    incoming
      .resume()
      .on('end', () => answer.writeHead(status).end(status === 200 ? '{}' : '{"__type":"a#InternalFailure"}'));
  });
  const updater = await updaterOf(server);
  await updater.write(WRITE);
  expect(requests).toBe(2);
  updater.close();
});

it('makes no attempt beyond its time budget', async () => {
  let requests = 0;
  let nowMs = 0;
  server = createServer((incoming, answer) => {
    requests += 1;
    nowMs += 980;
    incoming.resume().on('end', () => answer.writeHead(503).end('{}'));
  });
  const updater = await updaterOf(server, { nowMs: () => nowMs, budgetMs: 2_000 });
  await expect(updater.write(WRITE)).rejects.toMatchObject({ name: 'StoreFault' });
  expect(requests).toBe(2);
  updater.close();
});

it.each([
  [500, 'no JSON', 'InternalServerError'],
  [500, '{}', 'InternalServerError'],
  [503, '{}', 'InternalServerError'],
  [500, '{"__type":"com.amazon.coral.service#InternalFailure"}', 'InternalServerError'],
  [503, '{"__type":"ServiceUnavailableException"}', 'InternalServerError'],
  [503, '{"__type":"x#ThrottlingException"}', 'ThrottlingException'],
  [499, 'no JSON', 'SerializationException'],
  [499, '{}', 'Status499'],
  [404, '{}', 'Status404'],
  [200, 'no JSON', 'SerializationException'],
])('a response without an error name is classified by its status: %i %s', async (status, body, name) => {
  expect(await faultOf(status, body)).toMatchObject({ name: 'StoreFault', cause: { name } });
});
