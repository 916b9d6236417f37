import { createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { freePort, listenOnLoopback } from '../../../shared/host/loopback.ts';
import { startTlsServer } from '../../../test/support/tls-server.ts';
import { makeRelayCertificate, makeSiteAuthority } from '../relay/certificates.ts';
import { serveRelay } from '../relay/relay-server.ts';
import { serveWitness } from '../site/witness.ts';
import { readWitness } from './measure-witness.ts';

const today = { nowMs: Date.now(), validDays: 1 };
const authority = makeSiteAuthority({ commonName: 'site', ...today });
const certificate = makeRelayCertificate(authority, { names: ['127.0.0.1'], ...today });

/** A relay that counts the connections of its site. */
async function relayOf() {
  let opened = 0;
  let closed = 0;
  const relay = await serveRelay({
    address: '127.0.0.1',
    port: 0,
    certificate,
    relay: async () => ({ status: 503, body: {} }),
    site: () => {
      opened += 1;
      return {
        received() {},
        closed() {
          closed += 1;
        },
      };
    },
  });
  onTestFinished(() => relay.close());
  return {
    heartbeatEndpoint: `https://127.0.0.1:${relay.port}`,
    heartbeatCertificateAuthority: authority.certificatePem,
    counts: () => [opened, closed],
  };
}

it('is nothing without a relay, or without a port for probes', async () => {
  const { counts, ...use } = await relayOf();
  expect(await readWitness({ nodeName: 'a', witness: { address: '', port: 1 } })).toBeUndefined();
  expect(await readWitness({ nodeName: 'a', ...use })).toBeUndefined();
  expect(counts()).toEqual([0, 0]);
});

it('finds a port that is free, and a relay that accepts the connection, which is closed', async () => {
  const { counts, ...use } = await relayOf();
  const witness = { address: '127.0.0.1', port: await freePort() };
  for (let round = 0; round < 2; round += 1) {
    expect(await readWitness({ nodeName: 'a', witness, ...use })).toEqual({ port: { kind: 'free' }, relay: 'joined' });
  }
  expect(counts()[0]).toBe(2);
  const other = await startTlsServer((_, response) => response.writeHead(404).end());
  onTestFinished(() => other.close());
  const { url: heartbeatEndpoint, certificateAuthority: heartbeatCertificateAuthority } = other;
  expect(await readWitness({ nodeName: 'a', witness, heartbeatEndpoint, heartbeatCertificateAuthority })).toMatchObject(
    { relay: 'unsupported' },
  );
  const closed = { ...use, heartbeatEndpoint: `https://127.0.0.1:${await freePort()}` };
  expect(await readWitness({ nodeName: 'a', witness, ...closed })).toMatchObject({ relay: 'failed' });
});

it.each(['', '0.0.0.0', '::', '127.0.0.1'])('finds this machine at its port, listening on "%s"', async (address) => {
  const { counts: _, ...use } = await relayOf();
  const served = await serveWitness({ address: '127.0.0.1', port: 0, nodeName: 'a' });
  onTestFinished(() => served.close());
  const witness = { address, port: served.port };
  expect((await readWitness({ nodeName: 'a', witness, ...use }))?.port).toEqual({ kind: 'answers' });
  expect(
    (await readWitness({ nodeName: 'b', witness: { ...witness, address: '127.0.0.1' }, ...use }))?.port,
  ).toMatchObject({ kind: 'failed', code: 'EADDRINUSE', message: expect.stringContaining('EADDRINUSE') });
});

it('finds a port of another program, which stays', async () => {
  const { counts: _, ...use } = await relayOf();
  const other = createServer((socket) => socket.end('x'));
  onTestFinished(() => void other.close());
  const witness = { address: '127.0.0.1', port: await listenOnLoopback(other) };
  for (let round = 0; round < 2; round += 1) {
    expect((await readWitness({ nodeName: 'a', witness, ...use }))?.port).toMatchObject({ code: 'EADDRINUSE' });
  }
});
