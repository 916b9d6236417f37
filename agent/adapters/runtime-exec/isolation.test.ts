import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NO_SECURITY } from '../../../test/support/no-security.ts';
import { until } from '../../../test/support/until.ts';
import type { ContainerMount } from '../../ports/container-inputs.ts';
import type { ProcessSecurity } from '../../rules/security-context.ts';
import type { ContainerCommand } from './command-line.ts';
import { attached, EXIT_NOT_SET_UP, hasOwnMounts, isolated, mountMode, needsMounts } from './isolation.ts';
import { MARK } from './process-table.ts';

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

  it.each([
    ['and one that the machine removes meanwhile is no fault', 'umount "$3"', '\n'],
    ['and one that cannot be changed is a fault', 'echo busy; exit 1', 'busy'],
  ])('are read-only, %s', (_, instead, reason) => {
    const point = join(directory, 'removed soon');
    const programs = join(directory, 'programs');
    for (const path of [programs, point]) mkdirSync(path);
    const mount = `#!/bin/sh\n[ "$3" = '${point}' ] && { ${instead}; }\nexec /bin/mount "$@"\n`;
    writeFileSync(join(programs, 'mount'), mount, { mode: 0o755 });
    const before = `/bin/mount -t tmpfs tmpfs '${point}'`;
    const found = run(
      '( : >/usr/x ) 2>/dev/null || echo read-only',
      { readOnlyRoot: true },
      { before, path: programs },
    );
    expect([found.output[4], found.stdout]).toEqual([reason, reason === '\n' ? 'read-only\n' : '']);
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

describe('the command line of a process', () => {
  const commandOf = (
    more: Partial<ContainerCommand> = {},
    security: Partial<ProcessSecurity> = {},
  ): ContainerCommand => ({
    kind: 'command',
    file: '/bin/true',
    args: ['a b'],
    env: { A: '1' },
    directory: undefined,
    userId: undefined,
    groupId: undefined,
    mounts: [],
    hasOwnTerminationLog: false,
    ...more,
    security: { ...NO_SECURITY, ...security },
  });
  /** The words for setpriv(1), without its path and the program; undefined: it is not called. */
  const privilegesOf = (command: ContainerCommand): readonly string[] | undefined => {
    const { line } = isolated(command, 'mounts');
    const script = line.args.at(-1) ?? '';
    const [, words] = /setpriv (.*?)-- /.exec(script.replaceAll("'", '')) ?? [];
    return words?.split(' ').filter((word) => word !== '');
  };

  it('is the command itself if nothing is to be set up', () => {
    const command = commandOf({ userId: 7, groupId: 8 });
    expect(isolated(command, 'mounts')).toEqual({ line: command, hasMounts: false });
    expect(attached(command, undefined)).toEqual(command);
  });

  it.each<[string, Partial<ContainerCommand>, Partial<ProcessSecurity>, readonly string[]]>([
    ['no new privileges', {}, { noNewPrivileges: true }, ['--no-new-privs']],
    [
      'a user',
      { userId: 7, groupId: 8 },
      { noNewPrivileges: true },
      ['--reuid', '7', '--regid', '8', '--clear-groups', '--no-new-privs'],
    ],
    ['a user alone', { userId: 7 }, { noNewPrivileges: true }, ['--reuid', '7', '--clear-groups', '--no-new-privs']],
    ['a group alone', { groupId: 8 }, { noNewPrivileges: true }, ['--regid', '8', '--clear-groups', '--no-new-privs']],
    ['groups', { userId: 7 }, { supplementalGroups: [1, 2] }, ['--reuid', '7', '--groups', '1,2']],
    ['groups without a user', {}, { supplementalGroups: [3] }, ['--groups', '3']],
    [
      'capabilities',
      {},
      { capabilities: { dropped: ['all'], added: ['chown', 'kill'] } },
      ['--inh-caps', '-all,+chown,+kill', '--bounding-set', '-all,+chown,+kill'],
    ],
    ['no capability that changes', {}, { capabilities: { dropped: [], added: [] } }, []],
  ])('has privileges for %s', (_, more, security, expected) => {
    expect(privilegesOf(commandOf(more, security))).toEqual(expected);
  });

  it('runs as its user in the directory of the process, with variables under other names until then', () => {
    const command = commandOf(
      { directory: '/srv', env: { PATH: '/own', 'odd.name': 'x', [MARK]: 'u/c/0' } },
      { noNewPrivileges: true },
    );
    const { line, hasMounts } = isolated(command, 'mounts');
    expect([line.file, line.args[0], line.directory, hasMounts]).toEqual(['/bin/sh', '-c', '/srv', false]);
    expect(line.env).toEqual({
      PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
      NODEKEEPER_ENV_0: '/own',
      NODEKEEPER_ENV_1: 'x',
    });
    expect([line.userId, line.groupId]).toEqual([undefined, undefined]);
  });

  it.each<[string, Partial<ContainerCommand>, Partial<ProcessSecurity>, boolean]>([
    ['a mount', { mounts: [{ source: '/a', target: '/b', isFile: false, readOnly: false }] }, {}, true],
    ['a read-only root', {}, { readOnlyRoot: true }, true],
    ['a termination log of its own', { hasOwnTerminationLog: true }, {}, true],
    ['none of these', {}, {}, false],
  ])('has mounts of its own for %s', (_, more, security, hasMounts) => {
    const command = commandOf({ userId: 7, ...more }, security);
    const found = isolated(command, 'mounts');
    expect([needsMounts(command), found.hasMounts]).toEqual([hasMounts, hasMounts]);
    if (!hasMounts) return;
    expect(found.line.args.slice(0, -1)).toEqual(['--mount', '--propagation', 'slave', '--', '/bin/sh', '-c']);
    expect(found.line.args.at(-1)).toContain('--reuid');
  });

  it('of a further process enters the mounts of the first one', () => {
    const line = attached(commandOf({ userId: 7 }), 4711);
    expect(line.file).toMatch(/\/nsenter$/);
    expect(line.args.slice(0, -1)).toEqual(['--mount=/proc/4711/ns/mnt', '--', '/bin/sh', '-c']);
    expect(line.args.at(-1)).toMatch(/^cd '\/' \|\| exit 125\nexec .*--reuid/);
    expect(attached(commandOf({ directory: '/a b' }), 4711).args.at(-1)).toMatch(/^cd '\/a b' /);
    const further = attached(commandOf({}, { noNewPrivileges: true }), undefined);
    expect([further.file, further.args[0]]).toEqual(['/bin/sh', '-c']);
  });

  it('has links in place of mounts where the agent may not mount', () => {
    const target = join(directory, 'mounts/data');
    const mount = { source: directory, target, isFile: false, readOnly: false };
    const linked = () => isolated(commandOf({ mounts: [mount] }), 'links');
    expect(linked().hasMounts).toBe(false);
    expect(readlinkSync(target)).toBe(directory);
    linked();
    expect(() => isolated(commandOf({ mounts: [{ ...mount, source: '/' }] }), 'links')).toThrow(
      `volumeMount ${target}: this agent lacks mount namespaces, and cannot create a link there: EEXIST`,
    );
    // The machine's own file stays what the container sees.
    isolated(commandOf({ mounts: [{ ...mount, target: directory, replacesMachine: true }] }), 'links');
    expect(() => isolated(commandOf({}, { readOnlyRoot: true }), 'links')).toThrow(
      'readOnlyRootFilesystem needs mount namespaces, which this agent lacks',
    );
  });

  it('is in the mounts of this process, or in others', async () => {
    expect([hasOwnMounts(process.pid), hasOwnMounts(2 ** 30)]).toEqual([false, false]);
    const child = spawn('unshare', ['--mount', '--', 'sleep', '300'], { stdio: 'ignore' });
    await until(() => hasOwnMounts(child.pid ?? 0), { withinMs: 10_000, everyMs: 5 });
    child.kill('SIGKILL');
  });

  it('can have mounts if this process may make namespaces of mounts', () => {
    const isAllowed = spawnSync('unshare', ['--mount', 'true']).status === 0;
    expect(mountMode()).toBe(isAllowed ? 'mounts' : 'links');
  });
});
