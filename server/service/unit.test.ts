import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { HUB_NODE_FLAGS, NODE_FLAGS, RELEASED_HUB_NODE_FLAGS } from '../../shared/config/serve-flags.mjs';
import { parseServeOptions } from '../options.ts';
import { serviceOf, unitMark, unitText } from './unit.ts';

const HUB = [
  ...['--upstream', 'https://cluster.example:6443/a%20b', '--upstream-token', '/e/hub-token'],
  ...['--upstream-ca', '/e/ca.pem', '--site-hub', 'system:serviceaccount:kube-system:hub', '--power-off', '/opt/off'],
];
const PROGRAM = { node: process.execPath, main: '/opt/nodekeeper/server/bin/start.mjs' };
const textOf = (...args: readonly string[]): string => unitText(parseServeOptions(args), PROGRAM);
const linesOf = (text: string, name: string): readonly string[] =>
  text.split('\n').flatMap((line) => (line.startsWith(`${name}=`) ? [line.slice(name.length + 1)] : []));
const ALL = [
  ...[
    '--listen',
    '0.0.0.0',
    '--port',
    '443',
    '--name',
    'a 100% "b" $c',
    '--tls-cert',
    '/e/a b.crt',
    '--tls-key',
    '/e/t.key',
  ],
  ...['--client-ca', '/e/ca', '--tokens', '/e/100%', '--policy', '/e/p', '--no-controllers', '--quiet'],
];

function unitFile(text: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'nk-unit-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, serviceOf({ upstream: undefined }).name);
  writeFileSync(file, text.replace(PROGRAM.main, '/dev/null'));
  return file;
}

const analyze = (...args: readonly string[]) => spawnSync('systemd-analyze', args, { encoding: 'utf8' });

describe('the unit of serve', () => {
  it('starts this Node.js with the options that it was installed with', () => {
    const text = textOf('--port', '7000', '--cluster-id', 'edge');
    expect(text.startsWith(`${unitMark(serviceOf({ upstream: undefined }))}\n`)).toBe(true);
    expect(linesOf(text, 'ExecStart')).toEqual([
      `${PROGRAM.node} --max-semi-space-size=16 --heap-growing-percent=15 ${PROGRAM.main} --data /var/lib/nodekeeper-server ` +
        '--listen 127.0.0.1 --port 7000 --cluster-id edge --synchronous full --log plain --log-level info',
    ]);
    expect(linesOf(text, 'LoadCredential')).toEqual([]);
  });

  it('has the flags of npm start', () => {
    const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    expect(scripts.start).toContain(`node ${NODE_FLAGS.join(' ')} `);
  });

  it('has the flags of a hub, with which a clone can read its TypeScript', () => {
    expect(linesOf(textOf(...HUB), 'ExecStart')[0]).toContain(`node ${HUB_NODE_FLAGS.join(' ')} ${PROGRAM.main} `);
    expect(['--lite-mode', ...HUB_NODE_FLAGS]).toEqual(RELEASED_HUB_NODE_FLAGS);
  });

  it('reads files as credentials, and quotes what systemd would expand', () => {
    const text = textOf(...ALL);
    expect(linesOf(text, 'LoadCredential')).toEqual([
      'tls-cert:/e/a b.crt',
      'tls-key:/e/t.key',
      'client-ca:/e/ca',
      'tokens:/e/100%%',
      'policy:/e/p',
    ]);
    const [command = ''] = linesOf(text, 'ExecStart');
    expect(command).toContain('--name "a 100%% \\"b\\" $$c" --no-controllers');
    expect(command).toMatch(/--tls-key "\$\{CREDENTIALS_DIRECTORY\}\/tls-key"/);
    expect(command).not.toContain('--name 0.0.0.0');
  });

  it('has the right to low ports only where it needs one', () => {
    expect(linesOf(textOf(), 'CapabilityBoundingSet')).toEqual(['']);
    expect(linesOf(textOf(), 'PrivateUsers')).toEqual(['yes']);
    expect(linesOf(textOf(...ALL), 'CapabilityBoundingSet')).toEqual(['CAP_NET_BIND_SERVICE']);
  });

  it('reaches this machine alone while it listens on loopback', () => {
    expect(linesOf(textOf(), 'IPAddressDeny')).toEqual(['any']);
    expect(linesOf(textOf(...ALL), 'IPAddressDeny')).toEqual([]);
  });

  it('reaches AWS for the tables of a stack', () => {
    const text = textOf('--store', 'dynamodb', '--region', 'eu-west-1', '--stack', 'S');
    expect(linesOf(text, 'ExecStart')[0]).toContain(' --store dynamodb --region eu-west-1 --stack S --log plain');
    expect(linesOf(text, 'IPAddressDeny')).toEqual([]);
  });

  it('of a hub has a name and a directory of its own, its credentials, and reaches its cluster', () => {
    const text = textOf(...HUB);
    expect(text.startsWith('# Written by `nodekeeper serve --install`')).toBe(true);
    expect(text.split('\n')[0]).toMatch(/systemctl edit nodekeeper-hub$/);
    expect(linesOf(text, 'StateDirectory')).toEqual(['nodekeeper-hub']);
    expect(linesOf(text, 'LoadCredential')).toEqual(['upstream-token:/e/hub-token', 'upstream-ca:/e/ca.pem']);
    const [command = ''] = linesOf(text, 'ExecStart');
    expect(command).toContain(' --data /var/lib/nodekeeper-hub ');
    expect(command).toContain(' --upstream "https://cluster.example:6443/a%%20b" ');
    expect(command).toMatch(/--upstream-token "\$\{CREDENTIALS_DIRECTORY\}\/upstream-token"/);
    expect(command).toContain(' --site-hub system:serviceaccount:kube-system:hub --power-off /opt/off ');
    expect(command).not.toContain('--cluster-id');
    expect(linesOf(text, 'IPAddressDeny')).toEqual([]);
    const certified = textOf('--upstream', 'https://a', '--upstream-cert', '/e/c', '--upstream-key', '/e/k');
    expect(linesOf(certified, 'LoadCredential')).toEqual(['upstream-cert:/e/c', 'upstream-key:/e/k']);
  });

  it('refuses what a unit cannot have', () => {
    expect(() => textOf('--policy', 'a\nExecStart=b')).toThrow('line break');
    expect(() => textOf('--name', 'a\nExecStart=b')).toThrow('line break');
  });

  it.each([[[]], [ALL], [HUB]])('is valid for systemd, with an exposure of at most 2.0 (%j)', (args) => {
    const file = unitFile(textOf(...args));
    const verified = analyze('verify', file);
    expect(`${verified.stdout}${verified.stderr}`).toBe('');
    const security = analyze('security', '--offline=true', '--no-pager', file);
    const [, exposure] = /Overall exposure level for \S+: ([\d.]+)/.exec(security.stdout) ?? [];
    expect(Number(exposure)).toBeLessThanOrEqual(2);
  });
});
