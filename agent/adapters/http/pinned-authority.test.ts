import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { authorityHash } from '../../../shared/host/authority-hash.ts';
import { makeAuthority, makeServerCertificate } from '../../../shared/host/certificate.ts';
import { freePort, listenOnLoopback } from '../../../shared/host/loopback.ts';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { AgentStartError } from '../../app/start-checks.ts';
import type { AgentConfig } from '../../config.ts';
import { chainOf, PINNED_AUTHORITY_FILE, withPinnedAuthority } from './pinned-authority.ts';

async function served() {
  const nowMs = Date.now();
  const authority = await makeAuthority({ commonName: 'test', nowMs, validDays: 1 });
  const names = ['localhost', '127.0.0.1'];
  const { certificatePem, privateKeyPem } = await makeServerCertificate(authority, { names, nowMs, validDays: 1 });
  const chain = `${certificatePem}\n${authority.certificatePem}`;
  const asked: string[] = [];
  /** The names that clients asked for, and how many are connected. */
  const seen = { names: [] as string[], open: 0 };
  const SNICallback = (name: string, done: (error: null) => void) => {
    seen.names.push(name);
    done(null);
  };
  const server = createServer({ cert: chain, key: privateKeyPem, SNICallback }, ({ url = '' }) => void asked.push(url));
  onTestFinished(() => void server.close());
  server.on('connection', (socket) => {
    seen.open += 1;
    socket.once('close', () => {
      seen.open -= 1;
    });
  });
  const port = await listenOnLoopback(server);
  return { authority: new X509Certificate(authority.certificatePem), port, asked, seen };
}
const configOf = (more: object) => ({ rootDirectory: join(folderForTest(), 'root'), ...more }) as AgentConfig;

describe('the authority of a server', () => {
  it('is the one with the hash, is kept on disk, and nothing is sent for it', async () => {
    const { authority, port, asked, seen } = await served();
    for (const host of ['127.0.0.1', 'localhost']) {
      const config = configOf({ endpoint: `https://${host}:${port}`, caHash: authorityHash(authority.raw) });
      const pem = authority.toString();
      expect(await withPinnedAuthority(config)).toEqual({ ...config, certificateAuthority: pem });
      expect(readFileSync(join(config.rootDirectory, PINNED_AUTHORITY_FILE), 'utf8')).toBe(pem);
    }
    expect(asked).toEqual([]);
    // An address is no name of a server.
    expect(seen.names).toEqual(['localhost']);
    await vi.waitFor(() => expect(seen.open).toBe(0));
  });

  it('of another hash is refused', async () => {
    const { port } = await served();
    const config = configOf({ endpoint: `https://127.0.0.1:${port}`, caHash: `sha256:${'0'.repeat(64)}` });
    const fault = await withPinnedAuthority(config).catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(AgentStartError);
    expect((fault as Error).message).toMatch(/presents no authority with sha256:0+: .* Nothing was sent/);
    expect(existsSync(config.rootDirectory)).toBe(false);
  });

  it('is not found without an answer', async () => {
    const config = configOf({ endpoint: `https://127.0.0.1:${await freePort()}`, caHash: 'sha256:x' });
    const fault = await withPinnedAuthority(config).catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(AgentStartError);
    expect(fault).toMatchObject({
      message: expect.stringContaining('does not answer'),
      cause: { code: 'ECONNREFUSED' },
    });
  });

  it('is not waited for without end', async () => {
    const silent = createTcpServer((socket) => void socket.on('error', () => undefined));
    const port = await listenOnLoopback(silent);
    onTestFinished(() => void silent.close());
    const config = configOf({ endpoint: `https://127.0.0.1:${port}`, caHash: 'sha256:x' });
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const late = withPinnedAuthority(config);
    vi.advanceTimersByTime(10_000);
    await expect(late).rejects.toThrow('does not answer: no answer in 10000 ms');
    const { authority, port: other } = await served();
    const caHash = authorityHash(authority.raw);
    const found = withPinnedAuthority({ ...config, caHash, endpoint: `https://127.0.0.1:${other}` });
    vi.advanceTimersByTime(9_999);
    expect((await found).certificateAuthority).toBe(authority.toString());
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is used also where it cannot be kept', async () => {
    const { authority, port } = await served();
    const root = folderForTest();
    writeFileSync(join(root, 'file'), '');
    const caHash = authorityHash(authority.raw);
    const config = configOf({ endpoint: `https://127.0.0.1:${port}`, caHash, rootDirectory: join(root, 'file/below') });
    expect((await withPinnedAuthority(config)).certificateAuthority).toBe(authority.toString());
  });

  it('is not asked for when it is known, or none is pinned', async () => {
    for (const more of [{ caHash: 'sha256:x', certificateAuthority: 'pem' }, {}]) {
      const config = configOf({ endpoint: 'https://127.0.0.1:1', ...more });
      expect(await withPinnedAuthority(config)).toBe(config);
    }
  });
});

describe('the chain of a certificate', () => {
  const issued = (name: string, issuerCertificate?: object) =>
    ({ raw: Buffer.from(name), issuerCertificate }) as object;
  const names = (presented: object) => chainOf(presented).map(String);

  it('ends where no issuer is presented, or at a certificate that is its own issuer', () => {
    expect(names({})).toEqual([]);
    expect(names(issued('a'))).toEqual(['a']);
    expect(names(issued('a', issued('b', {})))).toEqual(['a', 'b']);
    const root = { raw: Buffer.from('root') };
    expect(names(issued('a', Object.assign(root, { issuerCertificate: root })))).toEqual(['a', 'root']);
  });

  it('is read up to ten certificates', () => {
    const chain = (left: number): object => issued(`c${left}`, left === 0 ? undefined : chain(left - 1));
    expect(names(chain(11))).toHaveLength(10);
    expect(names(chain(9))).toHaveLength(10);
    expect(names(chain(8))).toHaveLength(9);
  });
});
