import { rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../../shared/host/loopback.ts';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { startTlsServer } from '../../../test/support/tls-server.ts';
import type { RelayConfig } from '../../config.ts';
import type { InterfaceAddress } from '../../ports/machine.ts';
import { makeRelayCertificate, makeSiteAuthority } from '../relay/certificates.ts';
import { readOwnRelay, readUsedRelay } from './measure-relay.ts';

const nowMs = Date.now();
const authority = makeSiteAuthority({ commonName: 'site', nowMs, validDays: 1 });

let relay: RelayConfig;
beforeEach(async () => {
  const folder = folderForTest();
  relay = {
    address: '127.0.0.1',
    port: await freePort(),
    certificateFile: join(folder, 'relay.crt'),
    privateKeyFile: join(folder, 'relay.key'),
  };
});

function certify(...names: string[]) {
  const made = makeRelayCertificate(authority, { names, nowMs, validDays: 1 });
  writeFileSync(relay.certificateFile, made.certificatePem);
  writeFileSync(relay.privateKeyFile, made.privateKeyPem, { mode: 0o600 });
  return made;
}

const INTERFACES: readonly InterfaceAddress[] = [
  { interfaceName: 'lo', address: '127.0.0.1', family: 4 },
  { interfaceName: 'eth0', address: '10.0.0.7', family: 4 },
  { interfaceName: 'eth0', address: 'fe80::1', family: 6 },
];
const KNOWN: Readonly<Record<string, string>> = { 'relay.example': '10.0.0.7', 'other.example': '10.0.0.9' };
const machine = {
  addresses: () => INTERFACES,
  lookup: async (name: string) => (KNOWN[name] === undefined ? [] : [{ address: KNOWN[name], family: 4 as const }]),
};
const own = (fields: Partial<RelayConfig> = {}) =>
  readOwnRelay({ relay: { ...relay, ...fields }, nodeName: 'edge-1' }, machine);

describe('the files of a relay', () => {
  it.each([
    ['', ['10.0.0.7', 'fe80::1']],
    ['0.0.0.0', ['10.0.0.7', 'fe80::1']],
    ['::', ['10.0.0.7', 'fe80::1']],
    ['10.0.0.7', ['10.0.0.7']],
    ['relay.example', ['10.0.0.7']],
    ['unknown.example', []],
  ])('are of a machine that listens on "%s"', async (address, addresses) => {
    certify('10.0.0.7');
    expect((await own({ address }))?.files).toMatchObject({ kind: 'read', addresses });
  });

  it('name the machine by its addresses, and by names that lead to it', async () => {
    certify('10.0.0.7', '10.0.0.8', 'relay.example', 'other.example', 'unknown.example');
    expect((await own({ address: '10.0.0.7' }))?.files).toMatchObject({
      kind: 'read',
      names: ['relay.example', 'other.example', 'unknown.example', '10.0.0.7', '10.0.0.8'],
      ownNames: ['10.0.0.7', 'relay.example'],
    });
  });

  it('may name machines that are not known', async () => {
    certify('*.example', '10.0.0.7');
    expect((await own({ address: '10.0.0.7' }))?.files).toMatchObject({
      names: ['*.example', '10.0.0.7'],
      ownNames: undefined,
    });
    certify('*.example', 'relay.example', '10.0.0.7');
    expect((await own({ address: '10.0.0.7' }))?.files).toMatchObject({ ownNames: undefined });
  });

  it('do not name all addresses of the machine, and no more than twenty names are read', async () => {
    certify('10.0.0.7');
    expect((await own({ address: '' }))?.files).toMatchObject({ names: ['10.0.0.7'], ownNames: ['10.0.0.7'] });
    const names = Array.from({ length: 21 }, (_, index) => `name-${index}.example`);
    certify(...names);
    expect((await own({ address: '' }))?.files).toMatchObject({ names: names.slice(0, 20) });
  });

  it('have an end, or are no files', async () => {
    const { certificatePem } = certify('10.0.0.7');
    const { files } = (await own())!;
    expect(files.kind === 'read' && Math.abs(files.expiresAtMs - nowMs - 86_400_000)).toBeLessThan(2_000);
    writeFileSync(relay.privateKeyFile, certificatePem);
    expect((await own())?.files).toMatchObject({ kind: 'unusable' });
    rmSync(relay.certificateFile);
    expect((await own())?.files).toMatchObject({ kind: 'unusable', message: expect.stringContaining('ENOENT') });
  });

  it('are not those of a machine that is no relay', async () => {
    expect(await readOwnRelay({ nodeName: 'edge-1' }, machine)).toBeUndefined();
  });
});

/** What a relay answers to a read. */
const REFUSED = { kind: 'Status', message: 'a relay serves heartbeats only: PUT or PATCH of a Lease', code: 405 };

describe('the port of a relay', () => {
  async function serve(body: object, status: number, host = '127.0.0.1') {
    const { certificatePem: cert, privateKeyPem: key } = certify('127.0.0.1');
    const server = createHttpsServer({ cert, key }, (_, response) => {
      response.statusCode = status;
      response.end(JSON.stringify(body));
    });
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    relay = { ...relay, port: (server.address() as AddressInfo).port };
  }

  it('is free, and stays free', async () => {
    certify('127.0.0.1');
    expect([(await own())?.port, (await own())?.port]).toEqual([{ kind: 'free' }, { kind: 'free' }]);
  });

  it('is that of another server', async () => {
    await serve({ kind: 'Status', code: 404 }, 404);
    expect((await own())?.port).toMatchObject({ kind: 'failed', code: 'EADDRINUSE' });
  });

  it('is that of an address which the machine does not have', async () => {
    certify('192.0.2.1');
    expect((await own({ address: '192.0.2.1' }))?.port).toMatchObject({ kind: 'failed', code: 'EADDRNOTAVAIL' });
  });

  it.each([
    ['', '127.0.0.1'],
    ['0.0.0.0', '127.0.0.1'],
    ['127.0.0.2', '127.0.0.2'],
    ['::', '::1'],
    ['::1', '::1'],
  ])('of the address "%s" is that of a relay at %s', async (address, host) => {
    await serve(REFUSED, 405, host);
    expect((await own({ address }))?.port).toEqual({ kind: 'served', isThisCertificate: true });
  });

  it('is served by a relay, with this certificate or another one', async () => {
    await serve(REFUSED, 405);
    const served = (await own())?.port;
    certify('127.0.0.1');
    const other = (await own())?.port;
    rmSync(relay.certificateFile);
    const none = (await own())?.port;
    expect([served, other, none]).toEqual([
      { kind: 'served', isThisCertificate: true },
      { kind: 'served', isThisCertificate: false },
      { kind: 'served', isThisCertificate: false },
    ]);
  });
});

describe('the relay that a machine uses', () => {
  it('is none, does not answer, or is a relay if it refuses to be read', async () => {
    const use = { nodeName: 'edge-1' };
    expect(await readUsedRelay(use)).toBeUndefined();
    const closed = `https://127.0.0.1:${await freePort()}`;
    expect(await readUsedRelay({ ...use, heartbeatEndpoint: closed })).toMatchObject({ kind: 'failed' });
    let answer: { readonly status: number; readonly body: object } = { status: 405, body: REFUSED };
    const asked: unknown[] = [];
    const server = await startTlsServer((request, response) => {
      asked.push(request.url);
      response.statusCode = answer.status;
      response.end(JSON.stringify(answer.body));
    });
    onTestFinished(() => server.close());
    const used = {
      ...use,
      heartbeatEndpoint: server.url,
      heartbeatCertificateAuthority: server.certificateAuthority,
    };
    expect(await readUsedRelay(used)).toMatchObject({ kind: 'answered', isRelay: true });
    answer = { status: 401, body: { kind: 'Status', code: 401 } };
    expect(await readUsedRelay(used)).toMatchObject({ kind: 'answered', isRelay: false });
    expect(asked[0]).toMatch(/\/leases\/edge-1$/);
  });
});
