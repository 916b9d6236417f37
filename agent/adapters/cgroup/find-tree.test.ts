import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { findCgroupDirectory, limitWarning, openCgroupTree } from './find-tree.ts';

const UNIFIED = '30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n';
const HYBRID = `31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 23 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n`;

const find = (files: Readonly<Record<string, string>>, cgroupRoot = '') =>
  findCgroupDirectory({ fileRoot: '/', cgroupRoot, textAt: (path) => files[path] });

describe('the group that holds the pods', () => {
  it('is the unit of pods, if systemd has made it', () => {
    const unit = '/sys/fs/cgroup/system.slice/nodekeeper-pods.service';
    const files = {
      '/proc/self/mountinfo': UNIFIED,
      '/sys/fs/cgroup/cgroup.controllers': 'cpuset cpu io memory pids\n',
      [`${unit}/cgroup.controllers`]: 'cpu memory pids\n',
    };
    expect(find(files)).toEqual({
      kind: 'found',
      directory: unit,
      controllers: ['cpu', 'memory', 'pids'],
      isUnit: true,
    });
    expect(find(files, '/')).toMatchObject({ directory: '/sys/fs/cgroup/', isUnit: false });
  });

  it('is the root of the hierarchy, also beside cgroup v1', () => {
    expect(find({ '/proc/self/mountinfo': HYBRID, '/sys/fs/cgroup/unified/cgroup.controllers': 'hugetlb\n' })).toEqual({
      kind: 'found',
      directory: '/sys/fs/cgroup/unified',
      controllers: ['hugetlb'],
      isUnit: false,
    });
  });

  it('is at the mount point, which may have spaces in its name', () => {
    const files = {
      '/proc/self/mountinfo': `29 23 0:25 / /cgroup2 rw - tmpfs cgroup2 rw\n30 23 0:26 / /a\\040b\\040c rw - cgroup2 c rw\n`,
      '/a b c/cgroup.controllers': '\tcpu  pids \n',
    };
    expect(find(files)).toEqual({
      kind: 'found',
      directory: '/a b c',
      controllers: ['cpu', 'pids'],
      isUnit: false,
    });
  });

  it('is missing without cgroup v2, and when the configured one does not exist', () => {
    expect(find({})).toEqual({ kind: 'missing', why: 'cgroup v2 is not mounted' });
    expect(find({ '/proc/self/mountinfo': UNIFIED }, '/pods')).toEqual({
      kind: 'missing',
      why: '/sys/fs/cgroup/pods is not a group of cgroup v2',
    });
  });
});

describe('the tree of groups', () => {
  const UNIT = 'sys/fs/cgroup/system.slice/nodekeeper-pods.service';

  /** A machine with directories and files in place of groups. */
  function machine(...groups: readonly string[]) {
    const fileRoot = folderForTest();
    const at = (path: string): string => join(fileRoot, path);
    const write = (path: string, text: string): void => {
      mkdirSync(dirname(at(path)), { recursive: true });
      writeFileSync(at(path), text);
    };
    write('proc/self/mountinfo', UNIFIED);
    for (const group of ['sys/fs/cgroup', ...groups]) {
      write(`${group}/cgroup.controllers`, 'cpu memory io\n');
      write(`${group}/cgroup.subtree_control`, 'memory io\n');
      write(`${group}/cgroup.procs`, '7\n');
    }
    return { at, open: (cgroupRoot = '') => openCgroupTree({ fileRoot, cgroupRoot }) };
  }

  it('has the controllers of pods that are enabled, and those that can be are requested', () => {
    const { at, open } = machine();
    const opened = open();
    if (opened.kind !== 'open') throw new Error(opened.why);
    expect([...opened.tree.controllers]).toEqual([]);
    expect(readFileSync(at('sys/fs/cgroup/cgroup.subtree_control'), 'utf8')).toBe('+cpu\n');
    writeFileSync(at('sys/fs/cgroup/cgroup.subtree_control'), 'memory cpu io\n');
    expect(open()).toMatchObject({ tree: { controllers: new Set(['cpu', 'memory']) } });
    expect(existsSync(at('sys/fs/cgroup/unit'))).toBe(false);
  });

  it('is below the unit of pods: its process moves into a group of its own', () => {
    const { at, open } = machine(UNIT);
    expect(open().kind).toBe('open');
    expect(readFileSync(at(`${UNIT}/unit/cgroup.procs`), 'utf8')).toBe('7\n');
    expect(existsSync(at('sys/fs/cgroup/unit'))).toBe(false);
  });

  it('is missing, with the reason, where no group can be created', () => {
    const { at, open } = machine('sys/fs/cgroup/pods');
    expect(open('/none')).toEqual({
      kind: 'missing',
      why: `${at('sys/fs/cgroup/none')} is not a group of cgroup v2`,
    });
    rmSync(at('sys/fs/cgroup/pods/cgroup.subtree_control'));
    const why = `${at('sys/fs/cgroup/pods/cgroup.subtree_control')} cannot be read: ENOENT`;
    expect(open('/pods')).toEqual({ kind: 'missing', why: expect.stringContaining(why) });
    rmSync(at('sys/fs/cgroup/pods/cgroup.procs'));
    expect(open('/pods')).toEqual({
      kind: 'missing',
      why: expect.stringMatching(/^groups cannot be created: ENOENT.*cgroup\.procs/),
    });
  });
});

describe('the warning about limits', () => {
  it('names the controllers that are missing', () => {
    expect(limitWarning({ controllers: new Set(['cpu', 'cpuset', 'memory', 'pids']) })).toBeUndefined();
    expect(limitWarning({ controllers: new Set(['cpu', 'memory', 'pids']) })).toBe(
      'cgroup v2 has no controller cpuset for pods, so these limits are not enforced',
    );
    expect(limitWarning({ controllers: new Set([]) })).toBe(
      'cgroup v2 has no controller cpu, cpuset, memory, pids for pods, so these limits are not enforced; memory limits apply to each process (RLIMIT_DATA)',
    );
    expect(limitWarning(undefined, 'cgroup v2 is not mounted')).toBe(
      'limits of pods are not enforced by control groups (cgroup v2 is not mounted); memory limits apply to each process (RLIMIT_DATA)',
    );
  });
});
