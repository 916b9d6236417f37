import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NO_SECURITY } from '../../../test/support/no-security.ts';
import type { ContainerMount } from '../../ports/container-inputs.ts';
import type { ProcessSecurity } from '../../rules/security-context.ts';
import { EXIT_NOT_SET_UP, isolated } from './isolation.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'nodekeeper-isolation-'));
  chmodSync(directory, 0o777);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Runs a script as a container. `before` runs in the mount namespace that stands for the machine. */
function run(
  script: string,
  security: Partial<ProcessSecurity>,
  { mounts = [], before = ':', path }: { mounts?: readonly ContainerMount[]; before?: string; path?: string },
) {
  const { line } = isolated(
    {
      kind: 'command',
      file: '/bin/sh',
      args: ['-c', script],
      env: {},
      directory: undefined,
      userId: undefined,
      groupId: undefined,
      mounts,
      security: { ...NO_SECURITY, ...security },
      hasOwnTerminationLog: false,
    },
    'mounts',
  );
  const machine = ['--mount', '--', '/bin/sh', '-c', `${before}; exec "$@"`, 'sh', line.file, ...line.args];
  // Descriptor 4 is that of the reason.
  return spawnSync('unshare', machine, {
    env: { ...line.env, PATH: `${path === undefined ? '' : `${path}:`}${line.env['PATH']}` },
    stdio: ['ignore', 'pipe', 'pipe', 'ignore', 'pipe'],
    encoding: 'utf8',
  });
}

describe('the mounts of a process', () => {
  it('are read-only also at mount points of the machine with spaces and backslashes', () => {
    const point = join(directory, 'a b\\040c');
    mkdirSync(point);
    const before = `mount -t tmpfs tmpfs '${point}'`;
    const found = run(`( : >'${point}/file' ) 2>/dev/null || echo read-only`, { readOnlyRoot: true }, { before });
    expect([found.output[4], found.stdout]).toEqual(['\n', 'read-only\n']);
  });

  it('replace no program of the machine, also if the path becomes a link while it is mounted', () => {
    const [programs, volume, target] = ['programs', 'volume', 'target'].map((name) => join(directory, name));
    for (const path of [programs, volume, target]) mkdirSync(path as string);
    const victim = join(directory, 'victim');
    mkdirSync(victim);
    writeFileSync(join(victim, 'tool'), 'of the machine');
    // The first program after the check of the path replaces it, as a process of the pod could.
    const swap = `#!/bin/sh\nrmdir ${target} 2>/dev/null && ln -s ${victim} ${target}\nexec /bin/mount "$@"\n`;
    writeFileSync(join(programs as string, 'mount'), swap, { mode: 0o755 });
    const identity = execFileSync('stat', ['-L', '-c', '%d:%i', volume as string], { encoding: 'utf8' }).trim();
    const mount = { source: volume as string, target: target as string, isFile: false, readOnly: false, identity };
    const found = run(`ls ${victim}`, { noNewPrivileges: true }, { mounts: [mount], path: programs as string });
    expect(existsSync(join(victim, 'tool'))).toBe(true);
    expect([found.status, found.output[4], found.stdout]).toEqual([
      EXIT_NOT_SET_UP,
      `volumeMount ${target}: the volume changed while it was mounted`,
      '',
    ]);
  });
});
