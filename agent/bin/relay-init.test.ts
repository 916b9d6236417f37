import { X509Certificate } from 'node:crypto';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RELAY_USAGE, relayInit } from './relay-init.ts';

const NOW_MS = Date.UTC(2026, 10, 22);
let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'nodekeeper-relay-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const read = (name: string): string => readFileSync(join(directory, name), 'utf8');
const init = (...more: readonly string[]) => relayInit(['init', '--directory', directory, ...more], NOW_MS);

describe('nodekeeper-agent relay init', () => {
  it('makes a site CA and a certificate, and prints both configurations', () => {
    const { exitCode, text } = init('--name', 'relay.site.example,10.0.0.7', '--port', '9443');
    expect([exitCode, text]).toEqual([
      0,
      expect.stringContaining('heartbeatEndpoint: https://relay.site.example:9443'),
    ]);
    expect(text).toContain(`  privateKeyFile: ${directory}/relay.key`);
    const site = new X509Certificate(read('site-ca.pem'));
    const relay = new X509Certificate(read('relay.pem'));
    expect(relay.verify(site.publicKey)).toBe(true);
    expect([relay.checkHost('relay.site.example'), relay.checkIP('10.0.0.7')]).toEqual([
      'relay.site.example',
      '10.0.0.7',
    ]);
    for (const name of ['site-ca.key', 'relay.key']) expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
  });

  it('keeps an existing CA, and renews the certificate', () => {
    init('--name', 'a.example');
    const before = [read('site-ca.pem'), read('site-ca.key'), read('relay.pem')];
    expect(init('--name', 'a.example').text).toContain('used the site CA');
    expect([read('site-ca.pem'), read('site-ca.key')]).toEqual(before.slice(0, 2));
    expect(read('relay.pem')).not.toBe(before[2]);
    expect(statSync(join(directory, 'relay.key')).mode & 0o777).toBe(0o600);
  });

  it('makes a new key readable for its owner alone, whatever mode the old one has', () => {
    init('--name', 'a.example');
    chmodSync(join(directory, 'relay.key'), 0o644);
    writeFileSync(join(directory, 'relay.key.new'), 'half', { mode: 0o644 });
    init('--name', 'a.example');
    expect(statSync(join(directory, 'relay.key')).mode & 0o777).toBe(0o600);
    expect(readdirSync(directory).toSorted()).toEqual(['relay.key', 'relay.pem', 'site-ca.key', 'site-ca.pem']);
  });

  it('never replaces half a CA', () => {
    init('--name', 'a.example');
    rmSync(join(directory, 'site-ca.key'));
    const { exitCode, text } = init('--name', 'a.example');
    expect([exitCode, text]).toEqual([1, expect.stringContaining('site-ca.key')]);
  });

  it.each([
    [[]],
    [['init']],
    [['init', '--name', 'a']],
    [['make', '--directory', '/tmp', '--name', 'a']],
    [['--what']],
  ])('prints its usage for %j', (args) => {
    expect(relayInit(args, NOW_MS)).toEqual({ exitCode: 2, text: RELAY_USAGE });
  });

  it('refuses a name that no certificate can have', () => {
    const { exitCode, text } = init('--name', 'https://relay');
    expect([exitCode, text]).toEqual([2, '--name "https://relay": expected a DNS name or an address\n']);
  });
});
