/** The Debian package of the agent, installed, updated, removed and purged by dpkg under a real systemd (boot.sh). */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packAgentDeb } from '../../scripts/release/agent-packages.ts';
import { KUBERNETES_VERSION } from '../../shared/kinds/generated/version.ts';
import { BOOT_MS, boot, missing, resultsOf, why } from './boot.ts';

const ARCHITECTURE = process.arch === 'arm64' ? 'arm64' : 'x64';

describe.skipIf(missing !== undefined)(`the Debian package of the agent${why}`, () => {
  let directory: string;
  let file: string;
  const read = (step: string): Record<string, unknown> => resultsOf(directory, step);

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'nodekeeper-deb-'));
    const packages = join(directory, 'dist');
    mkdirSync(packages);
    file = await packAgentDeb(directory, packages, '0.9.0', ARCHITECTURE, 1);
    await packAgentDeb(directory, packages, '0.9.1', ARCHITECTURE, 1);
    await boot('deb-story.ts', directory);
  }, 2 * BOOT_MS);
  afterAll(() => rmSync(directory, { recursive: true }));

  it('brings its own Node.js, and does nothing until the machine is set up', () => {
    expect(read('installed')).toEqual({
      before: 'inactive',
      after: 'active',
      enabled: 'enabled',
      version: `${KUBERNETES_VERSION}-nodekeeper.0.9.0`,
      command: '0.9.0',
      copies: false,
    });
  });

  it('starts the new version when it is updated', () => {
    expect(read('updated')).toEqual({ active: 'active', enabled: 'enabled' });
  });

  it('keeps key and configuration when it is removed, and leaves nothing when it is purged', () => {
    const { left, active } = read('removed') as { left: string[]; active: string };
    expect(active).toBe('inactive');
    expect(left.filter((path) => path.startsWith('/'))).toEqual(['/etc/nodekeeper']);
    expect(left).toContain('pods');
    expect(read('purged')).toEqual({ left: [] });
  });

  it('has files of root alone', () => {
    const listed = execFileSync('dpkg-deb', ['--contents', file], { encoding: 'utf8' }).trim().split('\n');
    expect(listed.filter((line) => !/^.{10} root\/root /.test(line))).toEqual([]);
  });
});
