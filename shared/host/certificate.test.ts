import { X509Certificate } from 'node:crypto';
import { createServer } from 'node:https';
import { connect } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { makeAuthority, makeServerCertificate } from './certificate.ts';
import { listenOnLoopback } from './loopback.ts';

const nowMs = Date.UTC(2026, 10, 20);
const names = ['localhost', '127.0.0.1', '::1'];

describe('certificates', async () => {
  const authority = await makeAuthority({ commonName: 'nodekeeper local', nowMs, validDays: 3650 });
  const server = await makeServerCertificate(authority, { names, nowMs, validDays: 825 });

  it('makes an authority that signs itself and is marked as one', () => {
    const certificate = new X509Certificate(authority.certificatePem);
    expect(certificate.ca).toBe(true);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.subject).toBe('CN=nodekeeper local');
  });

  it('signs a server certificate for names and addresses', () => {
    const certificate = new X509Certificate(server.certificatePem);
    expect(certificate.ca).toBe(false);
    expect(certificate.verify(new X509Certificate(authority.certificatePem).publicKey)).toBe(true);
    expect(certificate.checkHost('localhost')).toBe('localhost');
    expect(certificate.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(certificate.checkIP('::1')).toBe('::1');
    expect(certificate.checkHost('example.org')).toBeUndefined();
  });

  it('is valid from a day before to the day it says', () => {
    const certificate = new X509Certificate(server.certificatePem);
    expect(new Date(certificate.validFrom).getTime()).toBe(nowMs - 86_400_000);
    expect(new Date(certificate.validTo).getTime()).toBe(nowMs + 825 * 86_400_000);
  });

  it('writes dates after 2049 in the long form', async () => {
    const far = await makeAuthority({ commonName: 'far', nowMs, validDays: 20_000 });
    expect(new X509Certificate(far.certificatePem).validTo).toMatch(/2081/);
  });

  it('is trusted by a TLS client that knows only the authority', async () => {
    const listener = createServer({ cert: server.certificatePem, key: server.privateKeyPem });
    const port = await listenOnLoopback(listener);
    const authorized = await new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', ca: authority.certificatePem }, () => {
        resolve(socket.authorized);
        socket.destroy();
      });
      socket.on('error', reject);
    });
    listener.close();
    expect(authorized).toBe(true);
  });
});
