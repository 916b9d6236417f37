import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
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
    expect(line.file).toBe('nsenter');
    expect(line.args.slice(0, -1)).toEqual(['--mount=/proc/4711/ns/mnt', '--', '/bin/sh', '-c']);
    expect(line.args.at(-1)).toMatch(/^cd '\/' \|\| exit 125\nexec .*--reuid/);
    expect(attached(commandOf({ directory: '/a b' }), 4711).args.at(-1)).toMatch(/^cd '\/a b' /);
    const further = attached(commandOf({}, { noNewPrivileges: true }), undefined);
    expect([further.file, further.args[0]]).toEqual(['/bin/sh', '-c']);
  });

  /** The end of the script: from the line after the last one of the set-up. */
  const endOf = (line: { readonly args: readonly string[] }): readonly string[] => {
    const lines = (line.args.at(-1) ?? '').split('\n');
    return lines.slice(1 + lines.findLastIndex((each) => /^(cd '\/' |exec 3>&-)/.test(each)));
  };

  it.each<[string, Readonly<Record<string, string>>, readonly string[]]>([
    [
      'a plain one',
      { A: '1', [MARK]: 'u/c/0' },
      [
        'export A="$NODEKEEPER_ENV_0"',
        'unset NODEKEEPER_ENV_0',
        'unset PATH',
        'unset PWD OLDPWD SHLVL _',
        "exec '/bin/true' 'a b'",
      ],
    ],
    [
      'a PATH',
      { PATH: '/own' },
      [
        'export PATH="$NODEKEEPER_ENV_0"',
        'unset NODEKEEPER_ENV_0',
        'unset PWD OLDPWD SHLVL _',
        "exec '/bin/true' 'a b'",
      ],
    ],
    [
      'names that a shell cannot assign, or keeps for itself',
      { 'odd.name': 'x', A: '1', PWD: '/own', IFS: ',' },
      [
        'export A="$NODEKEEPER_ENV_1"',
        'unset NODEKEEPER_ENV_1',
        'unset PATH',
        'unset OLDPWD SHLVL _',
        [
          'exec /usr/bin/env -u NODEKEEPER_ENV_0 -u NODEKEEPER_ENV_2 -u NODEKEEPER_ENV_3',
          `'odd.name='"$NODEKEEPER_ENV_0" 'PWD='"$NODEKEEPER_ENV_2" 'IFS='"$NODEKEEPER_ENV_3" '/bin/true' 'a b'`,
        ].join(' '),
      ],
    ],
  ])('ends as its program, with %s among its variables', (_, env, expected) => {
    expect(endOf(attached(commandOf({ env }), 7))).toEqual(expected);
    expect(endOf(isolated(commandOf({ env, hasOwnTerminationLog: true }), 'mounts').line)).toEqual(expected);
    const quotedOnce = expected.join('\n').replaceAll("'", `'\\''`);
    const privileged = endOf(attached(commandOf({ env }, { noNewPrivileges: true }), 7)).join('\n');
    expect(privileged).toMatch(/^exec '.*\/setpriv' '--no-new-privs' '--' '\/bin\/sh' '-c' '/);
    expect(privileged.endsWith(`'-c' '${quotedOnce}'`)).toBe(true);
  });

  /** The lines of the set-up, without functions of the shell. */
  const setUpOf = (more: Partial<ContainerCommand>, security: Partial<ProcessSecurity> = {}): readonly string[] => {
    const lines = (isolated(commandOf(more, security), 'mounts').line.args.at(-1) ?? '').split('\n');
    return lines.slice(4, 1 + lines.findIndex((line) => line.startsWith('exec 3>&-')));
  };
  const CHECKED_PROGRAM = [
    "(command -v '/bin/true') >/dev/null 2>&1 ||",
    "fail 'spawn /bin/true ENOENT' 127",
    'echo >&4',
    'exec 3>&- 4>&-',
  ];
  const DIRECTORY: ContainerMount = { source: '/v/a', target: '/m/d', isFile: false, readOnly: false };
  const FILE: ContainerMount = { source: '/v/f', target: '/m/f', isFile: true, readOnly: false };
  const makeDirectory = "[ -d '/m/d' ] || run mkdir -p '/m/d'";
  const makeFile = "[ -e '/m/f' ] || { run mkdir -p '/m'; run touch '/m/f'; }";
  const pathOf = (target: string) => `p=$(readlink -f '${target}') || fail 'volumeMount ${target} has no path' 125`;
  const changed = (target: string) => `fail 'volumeMount ${target}: the volume changed while it was mounted' 125`;
  const counted = 'mounts_at "$p"; before=$n';
  const isOver = (target: string) => `mounts_at "$p"; [ "$n" -gt "$before" ] || ${changed(target)}`;

  it('makes all mount points before the first mount, and checks its program last', () => {
    expect(setUpOf({ mounts: [DIRECTORY, FILE], directory: '/a b', env: { A: '1', PATH: '/own' } })).toEqual([
      makeDirectory,
      makeFile,
      makeDirectory,
      pathOf('/m/d'),
      `run mount --bind '/v/a' "$p"`,
      makeFile,
      pathOf('/m/f'),
      `run mount --bind '/v/f' "$p"`,
      "run cd '/a b'",
      "cd '/a b'",
      `(PATH="$NODEKEEPER_ENV_1"; command -v '/bin/true') >/dev/null 2>&1 ||`,
      ...CHECKED_PROGRAM.slice(1),
    ]);
  });

  it('searches its program in a PATH that is its first variable', () => {
    expect(setUpOf({ mounts: [DIRECTORY], env: { PATH: '/own' } })).toContain(
      `(PATH="$NODEKEEPER_ENV_0"; command -v '/bin/true') >/dev/null 2>&1 ||`,
    );
  });

  it.each<[string, Partial<ContainerMount>, readonly string[]]>([
    ['that is read-only', { readOnly: true }, ['run mount -o remount,bind,ro "$p"']],
    [
      'of a source that must be the same',
      { identity: '1:2' },
      [`[ "$(stat -L -c %d:%i "$p")" = 1:2 ] || ${changed('/m/d')}`],
    ],
    ['without more', {}, []],
  ])('has a mount %s', (_, more, after) => {
    expect(setUpOf({ mounts: [{ ...DIRECTORY, ...more }] })).toEqual([
      makeDirectory,
      makeDirectory,
      pathOf('/m/d'),
      `run mount --bind '/v/a' "$p"`,
      ...after,
      ...CHECKED_PROGRAM,
    ]);
  });

  it('makes the machine read-only before its mounts, and those that are not writable again', () => {
    const lines = setUpOf({ mounts: [DIRECTORY, { ...FILE, readOnly: true }] }, { readOnlyRoot: true });
    expect(lines.indexOf('done </proc/self/mountinfo')).toBe(6);
    expect(lines.slice(7)).toEqual([
      makeDirectory,
      pathOf('/m/d'),
      `run mount --bind '/v/a' "$p"`,
      'run mount -o remount,bind,rw "$p"',
      makeFile,
      pathOf('/m/f'),
      `run mount --bind '/v/f' "$p"`,
      'run mount -o remount,bind,ro "$p"',
      ...CHECKED_PROGRAM,
    ]);
  });

  it('replaces no program of the machine if it has privileges to lose, but for a path at its own place', () => {
    const same = { ...DIRECTORY, source: '/usr/lib', target: '/usr/lib' };
    const lines = setUpOf({ mounts: [DIRECTORY, same] }, { noNewPrivileges: true });
    const code = lines[4] ?? '';
    expect(code).toMatch(/^case \$p in \/\|\/usr\|.*\) fail 'volumeMount \/m\/d would replace .*' 125 ;; esac$/);
    expect(lines).toEqual([
      makeDirectory,
      "[ -d '/usr/lib' ] || run mkdir -p '/usr/lib'",
      makeDirectory,
      pathOf('/m/d'),
      code,
      counted,
      `run mount --bind '/v/a' "$p"`,
      isOver('/m/d'),
      "[ -d '/usr/lib' ] || run mkdir -p '/usr/lib'",
      pathOf('/usr/lib'),
      counted,
      `run mount --bind '/usr/lib' "$p"`,
      isOver('/usr/lib'),
      ...CHECKED_PROGRAM,
    ]);
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

  it.each([
    ['exit 0', 'mounts', 10_000],
    ['exit 1', 'links', 10_000],
    ['exec /bin/sleep 60', 'links', 300],
  ])('has mounts if unshare can make them in time: %s', (script, mode, limitMs) => {
    const seen = join(directory, 'seen');
    const program = `#!/bin/sh\necho "$@" >${seen}\n${script}\n`;
    writeFileSync(join(directory, 'unshare'), program, { mode: 0o755 });
    expect(mountMode(directory, limitMs)).toBe(mode);
    // On a busy machine the short limit may end the shell before its first line.
    if (limitMs > 300) expect(readFileSync(seen, 'utf8')).toBe('--mount -- /bin/sh -c command -v mount\n');
    rmSync(join(directory, 'unshare'));
    expect(mountMode(directory)).toBe('links');
  });

  it('can have mounts if this process may make namespaces of mounts', () => {
    const isAllowed = spawnSync('unshare', ['--mount', 'true']).status === 0;
    expect(mountMode()).toBe(isAllowed ? 'mounts' : 'links');
  });
});
