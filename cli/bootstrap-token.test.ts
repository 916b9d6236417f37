import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { IDENTITIES, IdentityCluster } from '../test/support/identity-cluster.ts';
import { nodeKeyPair } from '../test/support/node-key-pair.ts';
import { bootstrapTokenCommand } from './bootstrap-token.ts';
import { CommandError } from './command.ts';
import { apiAccess } from './kubeconfig.ts';

let cluster: IdentityCluster;
let lines: string[];
beforeEach(() => {
  cluster = new IdentityCluster();
  lines = [];
});

const ACCESS = ['--server', 'https://cluster.example', '--token', 'the-administrators-token'];

/** The API of a cluster in memory, in place of sendToApi. */
function run(...args: string[]): Promise<void> {
  const io = { environment: {}, nowMs: cluster.nowMs, print: (line: string) => lines.push(line) };
  return bootstrapTokenCommand([...args, ...ACCESS], io, async (access, { method, path, body }) => {
    expect(access.url).toBe('https://cluster.example');
    const answer = await cluster.send(method, path, access.token, body);
    if (answer.code >= 300) throw new CommandError(answer.body.message, '');
    return answer.body;
  });
}

describe('nodekeeper bootstrap-token', () => {
  it('creates a token that enrols a machine, and prints only the token', async () => {
    await run('create', '--uses', '2', '--nodes', 'edge-*', '--label', 'site=north', '--hours', '1');
    expect(lines).toHaveLength(1);
    const enrolled = await cluster.enrol(lines[0], 'edge-7', nodeKeyPair());
    expect([enrolled.code, enrolled.body.spec.nodeLabels]).toEqual([201, { site: 'north' }]);
    expect(cluster.stored()).not.toContain(lines[0]!.split('.')[1]);
    cluster.nowMs += 3_600_000;
    expect((await cluster.enrol(lines[0], 'edge-8', nodeKeyPair())).code).toBe(403);
  });

  it('lists them without their secrets, and revokes them', async () => {
    await run('create', '--reissue');
    const [id, secret] = lines.splice(0)[0]!.split('.');
    await run('list');
    expect(lines).toEqual([`${id} left 1/1 until 2026-01-02T00:00:00Z nodes * reissue`]);
    await run('revoke', `${id}.${secret}`);
    await run('list');
    expect(lines.slice(1)).toEqual([`${id} revoked`]);
    await expect(run('revoke', id!)).rejects.toThrow(`bootstraptokens.nodekeeper.dev "${id}" not found`);
    expect((await cluster.asAdmin('GET', IDENTITIES)).body.items).toEqual([]);
  });

  it.each([
    [['create', '--uses', '0'], '--uses must be a whole number of at least 1, not 0'],
    [['create', '--label', 'site'], '--label must be KEY=VALUE, not site'],
    [['revoke'], 'the ID of the token to revoke is missing'],
    [['show'], 'unknown verb: show'],
    [['create', '--nodes', '[a]'], 'spec.nodeNamePattern'],
  ])('says what is wrong with %j', async (args, message) => {
    await expect(run(...args)).rejects.toThrow(message);
  });
});

describe('a kubeconfig', () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'nk-kubeconfig-'));
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  const write = (user: object, cluster: object = {}): string => {
    const path = join(dir, 'config');
    const config = {
      'current-context': 'here',
      contexts: [{ name: 'here', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server: 'https://c.example', ...cluster } }],
      users: [{ name: 'u', user }],
    };
    writeFileSync(path, JSON.stringify(config));
    return path;
  };

  it('returns server, authority and token, also from files beside it', () => {
    const ca = Buffer.from('PEM').toString('base64');
    const kubeconfig = write({ token: 't' }, { 'certificate-authority-data': ca });
    expect(apiAccess({ kubeconfig }, {})).toMatchObject({ url: 'https://c.example', token: 't', ca: 'PEM' });
    writeFileSync(join(dir, 'token'), 'from-file\n');
    writeFileSync(join(dir, 'ca.pem'), 'OTHER');
    write({ tokenFile: 'token' }, { 'certificate-authority': 'ca.pem' });
    expect(apiAccess({}, { KUBECONFIG: kubeconfig })).toMatchObject({ token: 'from-file', ca: 'OTHER' });
    expect(apiAccess({ kubeconfig, token: 'mine' }, {})).toMatchObject({ url: 'https://c.example', token: 'mine' });
  });

  it('asks its exec plugin for a token', () => {
    const script = `process.stdout.write(JSON.stringify({ status: { token: process.env.WORD } }))`;
    const exec = { command: process.execPath, args: ['-e', script], env: [{ name: 'WORD', value: 'from-plugin' }] };
    expect(apiAccess({ kubeconfig: write({ exec }) }, {})).toMatchObject({ token: 'from-plugin' });
    const mute = { command: process.execPath, args: ['-e', ''] };
    expect(() => apiAccess({ kubeconfig: write({ exec: mute }) }, {})).toThrow('returned no token');
  });

  it('reports a missing file and a missing token', () => {
    expect(() => apiAccess({ kubeconfig: join(dir, 'none') }, {})).toThrow('no kubeconfig at');
    expect(() => apiAccess({ kubeconfig: write({}) }, {})).toThrow('has no token, tokenFile or exec plugin');
  });
});
