import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../adapters/config/load-config.ts';
import { plan } from '../bin/plan.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const CA = `${rootCertificates[0]}\n`;

describe('install.sh', () => {
  let directory: string;
  let root: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'nodekeeper-install-'));
    root = join(directory, 'root');
    for (const file of ['install.sh', 'nodekeeper-agent.service', 'nodekeeper-pods.service'])
      copyFileSync(join(HERE, file), join(directory, file));
    writeFileSync(join(directory, 'nodekeeper-agent.mjs'), '');
    writeFileSync(join(directory, 'token'), 'abc.def\n');
    writeFileSync(join(directory, 'ca.pem'), CA);
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  const install = (...args: readonly string[]): string =>
    execFileSync('sh', [join(directory, 'install.sh'), '--root', root, ...args], { encoding: 'utf8', stdio: 'pipe' });
  const usual = () => ['--endpoint', 'https://api.example', '--bootstrap-token-file', join(directory, 'token')];
  /** The installed configuration, as the agent reads it. */
  const load = () =>
    loadConfig(['--config', join(root, 'etc/nodekeeper/agent.yaml')], {
      readText: (path) => readFileSync(path.startsWith(root) ? path : join(root, path), 'utf8'),
      hostname: () => 'other',
    });

  it('writes a configuration that the agent accepts', () => {
    install(
      ...usual(),
      '--certificate-authority',
      join(directory, 'ca.pem'),
      '--node-name',
      'edge-1',
      '--runtime',
      'exec',
    );
    expect(load()).toMatchObject({
      kind: 'ok',
      warnings: [],
      config: {
        nodeName: 'edge-1',
        runtime: 'exec',
        bootstrapToken: 'abc.def',
        certificateAuthority: CA,
      },
    });
  });

  it.each([[[]], [['--runtime', 'none']], [['--runtime', 'exec']], [['--runtime', 'podman']]])(
    'turns graceful shutdown on, with the default grace for ordinary pods (%j)',
    async (runtime) => {
      install(...usual(), ...runtime);
      expect(load()).toMatchObject({ kind: 'ok', config: { runtime: runtime[1] ?? 'none' } });
      const printed: string[] = [];
      const config = join(root, 'etc/nodekeeper/agent.yaml');
      const pods = 'kind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c}]}\n';
      await plan(['shutdown', '--config', config, '--pods', 'pods.yaml'], {
        readText: (path) => (path === 'pods.yaml' ? pods : readFileSync(path, 'utf8')),
        hostname: () => 'other',
        print: (line) => printed.push(line),
        printError: (line) => printed.push(line),
      });
      expect(printed).toEqual([
        'Requested shutdown delay: 40 s. These pods need 30 s at most.',
        'priority 0, 30 s, begins after 0 s at the latest:',
        '  default/web  priority 0  grace 30 s',
        'priority 2000000000, 10 s: no pods, skipped',
      ]);
    },
  );

  it('says that a node without a runtime runs no pods, where that is what it writes', () => {
    const sentence = /^runtime none: this node runs no pods; a pod bound to it fails with reason NoRuntime\.$/m;
    expect(install(...usual())).toMatch(sentence);
    // The configuration is kept, and may say something else.
    expect(install()).not.toMatch(sentence);
    rmSync(root, { recursive: true });
    expect(install(...usual(), '--runtime', 'exec')).not.toMatch(sentence);
    expect(install('--help')).toMatch(/--runtime none \(the default\) runs no pods/);
  });

  it('refuses a runtime that does not exist, before it installs anything', () => {
    expect(() => install(...usual(), '--runtime', 'docker')).toThrow(
      /--runtime has to be none, exec or podman; found docker/,
    );
    expect(existsSync(root)).toBe(false);
  });

  it('keeps the token to root, and a configuration that is there as it is', () => {
    install(...usual());
    expect(statSync(join(root, 'etc/nodekeeper/bootstrap-token')).mode & 0o777).toBe(0o600);
    const config = join(root, 'etc/nodekeeper/agent.yaml');
    writeFileSync(config, 'ours');
    expect(install()).toContain('kept');
    expect(readFileSync(config, 'utf8')).toBe('ours');
  });

  it('loosens the unit for podman alone', () => {
    const dropIn = join(root, 'etc/systemd/system/nodekeeper-agent.service.d/podman.conf');
    install(...usual());
    expect(existsSync(dropIn)).toBe(false);
    install('--runtime', 'podman');
    expect(existsSync(dropIn)).toBe(true);
  });

  it('installs the unit with the group of the pods, and starts it before the agent', () => {
    install(...usual());
    const unit = (name: string): string => readFileSync(join(root, 'etc/systemd/system', name), 'utf8');
    expect(unit('nodekeeper-pods.service')).toMatch(/^Delegate=cpu cpuset memory pids$/m);
    expect(unit('nodekeeper-agent.service')).toMatch(/^Wants=.*\bnodekeeper-pods\.service$/m);
    expect(unit('nodekeeper-agent.service')).toMatch(/^After=.*\bnodekeeper-pods\.service$/m);
    expect(unit('nodekeeper-agent.service')).not.toMatch(/^ProtectControlGroups=yes/m);
  });

  it('says what is missing', () => {
    expect(() => install()).toThrow(/--endpoint is needed/);
    expect(() => install('--endpoint', 'https://x"y')).toThrow(/quotes/);
  });
});
