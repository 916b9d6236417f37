import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../adapters/config/load-config.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));

describe('install.sh', () => {
  let directory: string;
  let root: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'nodekeeper-install-'));
    root = join(directory, 'root');
    for (const file of ['install.sh', 'nodekeeper-agent.service'])
      copyFileSync(join(HERE, file), join(directory, file));
    writeFileSync(join(directory, 'nodekeeper-agent.mjs'), '');
    writeFileSync(join(directory, 'token'), 'abc.def\n');
    writeFileSync(join(directory, 'ca.pem'), 'a certificate\n');
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  const install = (...args: readonly string[]): string =>
    execFileSync('sh', [join(directory, 'install.sh'), '--root', root, ...args], { encoding: 'utf8', stdio: 'pipe' });
  const usual = () => ['--endpoint', 'https://api.example', '--bootstrap-token-file', join(directory, 'token')];

  it('writes a configuration that the agent takes', () => {
    install(
      ...usual(),
      '--certificate-authority',
      join(directory, 'ca.pem'),
      '--node-name',
      'edge-1',
      '--runtime',
      'exec',
    );
    const loaded = loadConfig(['--config', join(root, 'etc/nodekeeper/agent.yaml')], {
      readText: (path) => readFileSync(path.startsWith(root) ? path : join(root, path), 'utf8'),
      hostname: () => 'other',
    });
    expect(loaded).toMatchObject({
      kind: 'ok',
      config: {
        nodeName: 'edge-1',
        runtime: 'exec',
        bootstrapToken: 'abc.def',
        certificateAuthority: 'a certificate\n',
      },
    });
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

  it('says what is missing', () => {
    expect(() => install()).toThrow(/--endpoint is needed/);
    expect(() => install('--endpoint', 'https://x"y')).toThrow(/quotes/);
  });
});
