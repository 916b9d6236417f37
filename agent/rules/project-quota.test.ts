import { describe, expect, it } from 'vitest';
import { isOwnProject, kibibytesOf, projectCandidates, quotaCommand, quotaMount, quotaState } from './project-quota.ts';

const MOUNTS = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 8:2 / /var rw shared:2 - xfs /dev/sda2 rw,attr2,prjquota
31 30 8:3 /a\\040b /var/lib/my\\040data rw - ext4 /dev/mapper/x rw,prjquota
32 30 0:5 / /var/lib/hidden rw - ext4 /dev/sdb rw,prjquota
33 32 0:6 / /var/lib/hidden rw - tmpfs tmpfs rw
`.replaceAll('\\\\', '\\');

describe('the mount of a directory', () => {
  it.each([
    ['/var/lib', '/var', '/dev/sda2 /var xfs rw,attr2,prjquota 0 0\n'],
    ['/var', '/var', '/dev/sda2 /var xfs rw,attr2,prjquota 0 0\n'],
    ['/var/lib/my data/x', '/var/lib/my data', '/dev/mapper/x /var/lib/my\\040data ext4 rw,prjquota 0 0\n'],
  ])('of %s is %s', (path, point, entry) => {
    expect(quotaMount(MOUNTS, path, true)).toMatchObject({ kind: 'mount', point, entry });
  });

  it.each([
    ['/variable', 'ext4 at / enforces no project quotas'],
    ['/var/lib/hidden/x', 'tmpfs has no project quotas'],
  ])('of %s has no limits: %s', (path, why) => {
    expect(quotaMount(MOUNTS, path, true)).toMatchObject({ kind: 'none', why });
  });

  it('says what to do to have them', () => {
    const todo = (mount: string) => (quotaMount(`30 22 8:2 / ${mount}`, '/var', true) as { todo: string }).todo;
    expect(todo('/ rw - ext4 /dev/sda1 rw')).toBe(
      'Unmount it, tune2fs -O quota,project -Q prjquota /dev/sda1, and mount it with prjquota (rootflags=prjquota of the kernel).',
    );
    expect(todo('/var rw - xfs /dev/sda1 rw,noquota')).toBe('Mount it with prjquota.');
    expect(quotaMount('', '/var', true)).toMatchObject({ why: 'its file system is unknown' });
    expect(quotaMount(MOUNTS, '/var', false)).toMatchObject({ todo: 'Run it as root.' });
  });
});

it('projects of volumes are their own numbers, the same for a volume each time', () => {
  const candidates = projectCandidates('pvc-1', new Set());
  expect(candidates).toHaveLength(128);
  expect(candidates.every(isOwnProject)).toBe(true);
  expect(projectCandidates('pvc-1', new Set([candidates[0] ?? 0]))).toEqual(candidates.slice(1));
  expect(projectCandidates('pvc-2', new Set())[0]).not.toBe(candidates[0]);
  expect([1, 1_048_577, 2 ** 30 - 1, 2 ** 31].some(isOwnProject)).toBe(false);
});

describe('xfs_quota', () => {
  const STATE = 'Project quota state on / (/dev/vda)\n  Accounting: ON\n  Enforcement: ON\n  Inode: #12\n';
  // As versions 6.1 and 6.13 print it.
  const COUNTS =
    '/dev/vda      4          0      10240   00 [--------]           1          0          0   00 [--------] /\n';

  it('sets a limit and prints the state, of one mount alone and of projects by number', () => {
    const mount = quotaMount(MOUNTS, '/var/lib/my data', true);
    if (mount.kind !== 'mount') throw new Error(mount.why);
    const common = ['-x', '-f', '-t', '/t', '-D', '/dev/null', '-P', '/dev/null'];
    const state = ['-c', 'state -p', '-c', 'quota -p -N -n -v -b -i 5', '/var/lib/my data'];
    expect(quotaCommand(mount, '/t', 5)).toEqual([...common, ...state]);
    expect(quotaCommand(mount, '/t', 5, 0)).toEqual([...common, '-c', 'limit -p bhard=0k 5', ...state]);
  });

  it.each([
    [STATE + COUNTS, { isEnforced: true, limitKibibytes: 10_240, isUsed: true }],
    [STATE, { isEnforced: true, limitKibibytes: 0, isUsed: false }],
    [COUNTS.replace('[--------]', '[6 days 23:59]'), { isEnforced: false, limitKibibytes: 10_240, isUsed: true }],
    [COUNTS.replace(/(4|1|10240) /g, '0 '), { isEnforced: false, limitKibibytes: 0, isUsed: false }],
    [STATE.replace('Enforcement: ON', 'Enforcement: OFF'), { isEnforced: false, limitKibibytes: 0, isUsed: false }],
  ])('is read: %j', (output, state) => {
    expect(quotaState(output)).toEqual(state);
  });

  it('gets kibibytes, and never 0, which is no limit', () => {
    expect([0, 1, 1_024, 1_025].map(kibibytesOf)).toEqual([1, 1, 1, 2]);
  });
});
