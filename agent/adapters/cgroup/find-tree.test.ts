import { describe, expect, it } from 'vitest';
import { findCgroupDirectory, limitWarning } from './find-tree.ts';

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

  it('is missing without cgroup v2, and when the configured one does not exist', () => {
    expect(find({})).toEqual({ kind: 'missing', why: 'cgroup v2 is not mounted' });
    expect(find({ '/proc/self/mountinfo': UNIFIED }, '/pods')).toEqual({
      kind: 'missing',
      why: '/sys/fs/cgroup/pods is not a group of cgroup v2',
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
