import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { limitedVolumes } from '../../../test/support/limited-volumes.ts';
import { ProgramError } from '../system/run-program.ts';
import { projectQuotas } from './project-quota.ts';

const MADE = {
  unlimited: [null, null, null],
  isSameProject: true,
  projects: 3,
  contentProject: true,
  torn: 0,
  limits: [1_024, 1_024, 1_024],
  isUsedAfterRemoval: false,
};

/** The programs, over a file system with project quotas in memory. */
function diskIn(root: string, options = 'rw,prjquota', type = 'ext4') {
  const projects = new Map<string, number>();
  const limits = new Map<number, number>();
  const ran: string[] = [];
  const disk = { isEnforced: true, isDeaf: false };
  const below = (path: string): readonly string[] => [
    path,
    ...readdirSync(path, { recursive: true, withFileTypes: true }).map((each) => join(each.parentPath, each.name)),
  ];
  async function run(args: readonly string[]): Promise<string> {
    ran.push(args.join(' '));
    if (args[0] === 'lsattr') {
      return args
        .slice(2)
        .map((path) => `${String(projects.get(path) ?? 0).padStart(5)} --------------e----P-- ${path}\n`)
        .join('');
    }
    if (args[0] === 'find') {
      for (const path of below(args[1] ?? '')) projects.set(path, Number(args[args.indexOf('-p') + 1]));
      return '';
    }
    const [, limit, of] = / bhard=(\d+)k (\d+)/.exec(args.join(' ')) ?? [];
    if (of !== undefined && !disk.isDeaf) limits.set(Number(of), Number(limit));
    const project = Number(/ -b -i (\d+)/.exec(args.join(' '))?.[1]);
    const files = [...projects].filter(([path, of]) => of === project && existsSync(path)).length;
    const hard = limits.get(project) ?? 0;
    const counts = `/dev/sda1 ${files * 4} 0 ${hard} 00 [--------] ${files} 0 0 00 [--------] ${root}\n`;
    return `  Accounting: ON\n  Enforcement: ${disk.isEnforced ? 'ON' : 'OFF'}\n${files + hard > 0 ? counts : ''}`;
  }
  const fileRoot = folderForTest();
  for (const each of ['proc/self', 'etc']) mkdirSync(join(fileRoot, each), { recursive: true });
  writeFileSync(join(fileRoot, 'proc/self/mountinfo'), `30 1 8:1 / / rw - ${type} /dev/sda1 ${options}\n`);
  const machine = { fileRoot, isRoot: true, run };
  return { machine, quotas: projectQuotas(machine), projects, limits, ran, disk };
}

function volumeIn(root: string, name = 'pvc-1'): string {
  mkdirSync(join(root, name), { recursive: true });
  return join(root, name);
}

describe('volumes on a file system with project quotas', () => {
  it('have a project and a limit each, also after a run that was killed, until they are removed', async () => {
    const root = folderForTest();
    const made = await limitedVolumes(root, diskIn(root).machine, () => 'in memory');
    expect(JSON.parse(JSON.stringify(made))).toEqual({ ...MADE, filled: 'in memory', other: 'in memory' });
  });

  it('are full at their limit, and nothing else is, on a disk of the kernel', (context) => {
    const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-quota-'));
    const onDisk = (script: string) =>
      spawnSync(
        'unshare',
        [
          '-m',
          'sh',
          '-ec',
          `PATH=$PATH:/usr/sbin:/sbin; command -v xfs_quota; mount -t tmpfs tmpfs ${directory}; cd ${directory}
          truncate -s 32m image; mkdir disk; mkfs.ext4 -q -F -O quota,project -E quotatype=prjquota image
          mount -o loop,prjquota image disk; ${script}`,
        ],
        { encoding: 'utf8', timeout: 25_000 },
      );
    try {
      if (onDisk('true').status !== 0) context.skip('no project quotas');
      const story = new URL('../../../test/support/limited-volumes.ts', import.meta.url).pathname;
      const { stdout, stderr } = onDisk(`${process.execPath} --no-warnings ${story} ${directory}/disk`);
      expect(stderr).toBe('');
      expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toEqual({
        ...MADE,
        filled: { status: 1, isFull: true, isWithin: true },
        other: { status: 0, isFull: false, isWithin: true },
      });
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it('share no project with another volume or program, and none that a person named', async () => {
    const root = folderForTest();
    const { quotas, projects, limits, machine } = diskIn(root);
    const first = volumeIn(root);
    await quotas.limit(first, 1);
    const [project = 0] = projects.values();
    projects.clear();
    limits.clear();
    const projectNow = async () => {
      projects.delete(first);
      await quotas.limit(first, 1);
      return (projects.get(first) ?? 0) - project;
    };
    projects.set(root.concat('/..'), project);
    expect(await projectNow()).toBe(1);
    limits.clear();
    writeFileSync(join(machine.fileRoot, 'etc/projid'), `# mine\nvideo:${project + 1}\n`);
    writeFileSync(join(machine.fileRoot, 'etc/projects'), `${project + 2}:/srv\n`);
    expect(await projectNow()).toBe(3);
    for (let each = project; each < project + 128; each += 1) limits.set(each, 1);
    await expect(projectNow()).rejects.toThrow('no project is free at /');
  });

  it('stay as they are in a directory that somebody else limits', async () => {
    const root = folderForTest();
    const { quotas, projects, limits } = diskIn(root);
    const path = volumeIn(root);
    projects.set(path, 7);
    expect(await quotas.limit(path, 1)).toMatchObject({ why: expect.stringContaining('the project 7') });
    // An agent in a volume of another agent.
    projects.set(root, 2 ** 30).set(path, 2 ** 30);
    limits.set(2 ** 30, 5);
    expect(await quotas.limit(path, 1)).toMatchObject({ why: expect.stringContaining('the project 1073741824') });
    await quotas.release(path);
    expect(await quotas.fault(root)).toMatchObject({ kind: 'none' });
    expect([...limits]).toEqual([[2 ** 30, 5]]);
  });

  it('fail when xfs_quota sets no limit, and exits with 0', async () => {
    const root = folderForTest();
    const { quotas, disk } = diskIn(root);
    const path = volumeIn(root);
    await quotas.limit(path, 1);
    disk.isDeaf = true;
    await expect(quotas.release(path)).rejects.toThrow('did not set the limit');
    await expect(quotas.limit(path, 9_999)).rejects.toThrow('did not set the limit');
  });
});

describe('volumes without a limit', () => {
  it.each([
    ['ext4', 'rw', /^ext4 at \/ enforces no project quotas$/],
    ['xfs', 'rw,pqnoenforce', /^xfs at \/ enforces no/],
    ['tmpfs', 'rw,prjquota', /^tmpfs has no project quotas$/],
  ])('are those on %s with %s, and no program runs', async (type, options, why) => {
    const root = folderForTest();
    const { quotas, ran } = diskIn(root, options, type);
    expect(await quotas.limit(volumeIn(root), 1)).toMatchObject({ why: expect.stringMatching(why) });
    await quotas.release(volumeIn(root));
    await quotas.release(join(root, 'none'));
    expect(ran).toEqual([]);
  });

  it('are those of ext4 that ignores the option, and of a machine without the program', async () => {
    const root = folderForTest();
    const { quotas, disk, machine } = diskIn(root);
    disk.isEnforced = false;
    const fault = { kind: 'none', why: 'ext4 at / enforces no project quotas' };
    expect(await quotas.limit(volumeIn(root), 1)).toMatchObject(fault);
    expect(await quotas.fault(root)).toMatchObject(fault);
    const failing = (code: number) =>
      projectQuotas({
        ...machine,
        run: () => Promise.reject(new ProgramError('a fault', Object.assign(new Error(), { code }))),
      });
    expect(await failing(127).limit(volumeIn(root), 1)).toMatchObject({ todo: 'Install xfsprogs.' });
    await failing(127).release(volumeIn(root));
    await expect(failing(1).limit(volumeIn(root), 1)).rejects.toThrow('a fault');
  });
});
