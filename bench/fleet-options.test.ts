import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { UsageError } from './benchmark.ts';
import { readFleetOptions } from './fleet-options.ts';

describe('options of the fleet benchmark', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'nk-bench-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('start a cluster of 200 machines for a minute when nothing is said', () => {
    expect(readFleetOptions([])).toEqual({
      target: undefined,
      of: 'both',
      home: 'serve',
      awsLimits: true,
      beatsPerSecond: 500,
      ratedSeconds: 20,
      lists: 20,
      label: 'nodekeeper serve',
      peer: undefined,
      rounds: 2,
      warmUp: true,
      figuresFile: undefined,
      nodes: 200,
      zones: 3,
      seconds: 60,
      silent: 10,
      waitSeconds: 120,
      beatSeconds: 10,
      connections: 32,
      pids: [],
    });
  });

  it('name any API by its URL, with the token in a file', () => {
    const token = join(folder, 'token');
    writeFileSync(token, 'secret\n');
    const words = ['--url', 'https://192.0.2.7:6443', '--token-file', token, '--pids', '17,4711', '--nodes', '5000'];
    expect(readFleetOptions(words)).toMatchObject({
      target: { url: 'https://192.0.2.7:6443', ca: undefined, token: 'secret' },
      nodes: 5_000,
      silent: 250,
      pids: [17, 4_711],
    });
  });

  it('name any API by the current context of a kubeconfig', () => {
    const path = join(folder, 'config');
    const context = { name: 'c', context: { cluster: 'k', user: 'u' } };
    const clusters = [{ name: 'k', cluster: { server: 'https://192.0.2.7:6443' } }];
    const users = [{ name: 'u', user: { token: 'secret' } }];
    writeFileSync(path, JSON.stringify({ 'current-context': 'c', contexts: [context], clusters, users }));
    expect(readFleetOptions(['--kubeconfig', path])).toMatchObject({
      target: { url: 'https://192.0.2.7:6443', token: 'secret' },
      label: '192.0.2.7:6443',
    });
  });

  it('name a second API to measure beside the first', () => {
    const path = join(folder, 'config');
    const context = { name: 'c', context: { cluster: 'k', user: 'u' } };
    const clusters = [{ name: 'k', cluster: { server: 'https://192.0.2.7:6443' } }];
    const users = [{ name: 'u', user: { token: 'secret' } }];
    writeFileSync(path, JSON.stringify({ 'current-context': 'c', contexts: [context], clusters, users }));
    const words = ['--peer-kubeconfig', path, '--peer-pids', '17,18', '--rounds', '3', '--warm-up', 'off'];
    expect(readFleetOptions(words)).toMatchObject({
      target: undefined,
      peer: { access: { token: 'secret' }, pids: [17, 18], label: '192.0.2.7:6443' },
      rounds: 3,
      warmUp: false,
    });
  });

  it.each([
    [['--peer-pids', '1']],
    [['--peer-kubeconfig', '/nowhere/config']],
    [['--rounds', '0']],
    [['--url', 'https://a.invalid']],
    [['--url', 'https://a.invalid', '--token', 't', '--token-file', '/dev/null']],
    [['--url', 'ftp://a.invalid', '--token', 't']],
    [['--url', 'https://a.invalid', '--token', 't', '--ca', '/nowhere/ca.pem']],
    [['--token', 't']],
    [['--kubeconfig', '/nowhere/config']],
    [['--kubeconfig', '/nowhere/config', '--url', 'https://a.invalid']],
    [['--of', 'lists']],
    [['--url', 'https://a.invalid', '--token', 't', '--aws-limits', 'off']],
    [['--nodes', '0']],
    [['--nodes', '10', '--silent', '11']],
    [['--pids', '1,x']],
    [['--machines', '10']],
    [['10']],
  ])('are refused when they make no sense: %j', (words) => {
    expect(() => readFleetOptions(words)).toThrow(UsageError);
  });
});
