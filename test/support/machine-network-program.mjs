// Runs in a network namespace of machine-network.ts: one JSON request per line of its input, one answer per line.
import { Resolver } from 'node:dns/promises';
import { get } from 'node:http';
import { connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { serveNames } from '../../agent/adapters/services/name-server.ts';
import { ServiceNames } from '../../agent/rules/services/names.ts';

const CONNECT_MS = 1_000;
const REQUEST_MS = 3_000;

const actions = {
  serve: ({ port, name, address }) =>
    new Promise((resolve, reject) => {
      const server = createServer((socket) => {
        socket.on('error', () => undefined);
        socket.end(`${name} ${socket.remoteAddress?.replace('::ffff:', '')}`);
      });
      server.once('error', reject);
      server.listen(port, address, () => resolve('listens'));
    }),
  async names({ address, services, slices }) {
    const names = new ServiceNames('cluster.local', services, slices);
    const answer = (name, type) => names.answer(name, type);
    await serveNames({ address, domain: 'cluster.local', answer, resolvers: async () => [] });
    return 'listens';
  },
  async connect({ address, port, times }) {
    const reached = [];
    for (let index = 0; index < times; index += 1) reached.push(await reach(address, port));
    return reached;
  },
  get: ({ url }) =>
    new Promise((resolve) => {
      const request = get(url, { agent: false, timeout: REQUEST_MS }, (from) => {
        let text = '';
        from.setEncoding('utf8').on('data', (part) => {
          text += part;
        });
        from.on('end', () => resolve(text)).on('error', ({ code }) => resolve(code));
      });
      request.on('timeout', () => request.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })));
      request.on('error', ({ code }) => resolve(code));
    }),
  async resolve({ server, name, type }) {
    const resolver = new Resolver({ timeout: 2_000, tries: 1 });
    resolver.setServers([server]);
    return await resolver.resolve(name, type).catch((error) => error.code);
  },
};

const reach = (host, port) =>
  new Promise((resolve) => {
    let text = '';
    const socket = connect({ host, port });
    const timer = setTimeout(() => {
      socket.destroy();
      resolve('ETIMEDOUT');
    }, CONNECT_MS);
    socket.on('data', (bytes) => {
      text += bytes;
    });
    socket.on('error', ({ code }) => {
      clearTimeout(timer);
      resolve(code);
    });
    socket.on('end', () => {
      clearTimeout(timer);
      resolve(text);
    });
  });

const lines = createInterface({ input: process.stdin });
lines.on('line', async (line) => {
  const { id, kind, ...request } = JSON.parse(line);
  const answer = await actions[kind](request).catch((error) => error.code ?? error.message);
  process.stdout.write(`${JSON.stringify({ id, answer })}\n`);
});
lines.on('close', () => process.exit(0));
