import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { listenOnLoopback } from '../../../shared/host/loopback.ts';
import { type CertifiedKey, makeRelayCertificate, makeSiteAuthority } from './certificates.ts';

const nowMs = Date.UTC(2026, 10, 20);
const names = ['relay.site.example', '127.0.0.1', '::1', '2001:db8::7:1', '::ffff:10.0.0.7', '64:ff9b::a00:8'];
const authority = makeSiteAuthority({ commonName: 'site north', nowMs, validDays: 3_650 });
const relay = makeRelayCertificate(authority, { names, nowMs, validDays: 397 });

describe('the certificates of a site', () => {
  it('are an authority that signs itself, and a server certificate for names and addresses', () => {
    const site = new X509Certificate(authority.certificatePem);
    expect([site.ca, site.subject, site.verify(site.publicKey)]).toEqual([true, 'CN=site north', true]);
    const server = new X509Certificate(relay.certificatePem);
    expect([server.ca, server.issuer, server.verify(site.publicKey)]).toEqual([false, 'CN=site north', true]);
    expect(server.checkHost('relay.site.example')).toBe('relay.site.example');
    expect(server.checkHost('other.example')).toBeUndefined();
    for (const address of names.slice(1)) expect(server.checkIP(address), address).toBe(address);
    expect(server.checkIP('2001:db8::7:2')).toBeUndefined();
    expect(new Date(server.validTo).getTime()).toBe(nowMs + 397 * 86_400_000);
  });

  it('have dates after 2049 in the long form', () => {
    const far = makeSiteAuthority({ commonName: 'far', nowMs, validDays: 20_000 });
    expect(new X509Certificate(far.certificatePem).validTo).toMatch(/2081/);
    const turn = makeSiteAuthority({ commonName: 'turn', nowMs: Date.UTC(2049, 11, 31), validDays: 1 });
    const { validFrom, validTo } = new X509Certificate(turn.certificatePem);
    expect([validFrom, validTo]).toEqual(['Dec 30 00:00:00 2049 GMT', 'Jan  1 00:00:00 2050 GMT']);
  });

  const extensionsOf = ({ certificatePem }: CertifiedKey): readonly string[] => {
    const text = execFileSync('openssl', ['x509', '-noout', '-text'], { input: certificatePem }).toString();
    return (
      text
        .split('X509v3 extensions:')[1]
        ?.split('Signature Algorithm')[0]
        ?.split('\n')
        .map((line) => line.trim()) ?? []
    );
  };
  const afterLine = (lines: readonly string[], line: string): string | undefined => lines[lines.indexOf(line) + 1];

  it('say what their keys are for', () => {
    const [site, server] = [extensionsOf(authority), extensionsOf(relay)];
    expect(afterLine(site, 'X509v3 Basic Constraints: critical')).toBe('CA:TRUE, pathlen:0');
    expect(afterLine(site, 'X509v3 Key Usage: critical')).toBe('Certificate Sign, CRL Sign');
    expect(afterLine(server, 'X509v3 Basic Constraints: critical')).toBe('CA:FALSE');
    expect(afterLine(server, 'X509v3 Key Usage: critical')).toBe('Digital Signature');
    expect(afterLine(server, 'X509v3 Extended Key Usage:')).toBe('TLS Web Server Authentication');
    const keyOf = (lines: readonly string[]) => afterLine(lines, 'X509v3 Subject Key Identifier:');
    expect(keyOf(site)).toMatch(/^([0-9A-F]{2}:){19}[0-9A-F]{2}$/);
    expect(keyOf(server)).not.toBe(keyOf(site));
    for (const lines of [site, server]) {
      expect(afterLine(lines, 'X509v3 Authority Key Identifier:')?.replace(/^keyid:/, '')).toBe(keyOf(site));
    }
  });

  it('are of the name of a relay, from a day before they are made', () => {
    const { subject, validFrom } = new X509Certificate(relay.certificatePem);
    expect([subject, Date.parse(validFrom)]).toEqual(['CN=relay.site.example', nowMs - 86_400_000]);
    const unnamed = makeRelayCertificate(authority, { names: [], nowMs, validDays: 1 });
    expect(new X509Certificate(unnamed.certificatePem).subject).toBe('CN=relay');
  });

  it('have serial numbers of their own', () => {
    const serials = Array.from(
      { length: 50 },
      () => new X509Certificate(makeRelayCertificate(authority, { names, nowMs, validDays: 1 }).certificatePem),
    ).map(({ serialNumber }) => serialNumber);
    expect(new Set(serials).size).toBe(50);
    // Positive, and without a leading zero byte.
    expect(serials.every((serial) => /^[4-7][0-9A-F]{31}$/.test(serial))).toBe(true);
  });

  it('are refused with the key of another authority', () => {
    const other = makeSiteAuthority({ commonName: 'other', nowMs, validDays: 1 });
    const mixed = { ...authority, privateKeyPem: other.privateKeyPem };
    expect(() => makeRelayCertificate(mixed, { names, nowMs, validDays: 1 })).toThrow(/does not belong/);
  });

  it('are verified by openssl', () => {
    const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-site-'));
    try {
      writeFileSync(join(directory, 'ca.pem'), authority.certificatePem);
      writeFileSync(join(directory, 'relay.pem'), relay.certificatePem);
      const args = ['verify', '-x509_strict', '-attime', String(nowMs / 1_000), '-purpose', 'sslserver'];
      const output = execFileSync('openssl', [...args, '-CAfile', 'ca.pem', 'relay.pem'], { cwd: directory });
      expect(output.toString().trim()).toBe('relay.pem: OK');
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it('are trusted by a TLS client that knows only the authority', async () => {
    const today = { nowMs: Date.now(), validDays: 1 };
    const site = makeSiteAuthority({ commonName: 'site', ...today });
    const { certificatePem, privateKeyPem } = makeRelayCertificate(site, { names: ['127.0.0.1'], ...today });
    const listener = createServer({ cert: certificatePem, key: privateKeyPem });
    const port = await listenOnLoopback(listener);
    const authorized = await new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', ca: site.certificatePem }, () => {
        resolve(socket.authorized);
        socket.destroy();
      });
      socket.on('error', reject);
    });
    listener.close();
    expect(authorized).toBe(true);
  });
});
