import { describe, expect, it } from 'vitest';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { silentLog } from '../../../test/support/agent-api.ts';
import { type MemoryCgroups, memoryCgroups, podCgroups } from '../../../test/support/memory-cgroups.ts';
import type { CgroupTree } from '../../ports/cgroup-tree.ts';
import type { CpuPlacement } from '../../ports/pod-runtime.ts';
import { groupOf } from './pod-cgroups.ts';

const podOf = (uid: string, resources: object = {}): KubePod => ({
  metadata: { name: uid, uid },
  spec: { containers: [{ name: 'main', resources }] },
});
const limited = { requests: { cpu: '500m', memory: '1Mi' }, limits: { cpu: '1', memory: '2Mi' } };
const GROUP = 'kubepods/burstable/podu1';

function world(controllers?: readonly string[]) {
  const tree = memoryCgroups(controllers === undefined ? {} : { controllers });
  const own = new Set<string>();
  const warnings: string[] = [];
  const faults: { apply?: string; children?: string; remove?: string } = {};
  const failingTree: CgroupTree = {
    ...tree,
    apply(path, files) {
      if (path === faults.apply) throw new Error('EBUSY');
      tree.apply(path, files);
    },
    children(path) {
      if (path === faults.children) throw new Error('EIO');
      return tree.children(path);
    },
    remove(path) {
      if (path === faults.remove) throw new Error('EIO');
      return tree.remove(path);
    },
  };
  const capacity = { cpu: '2', memory: '1Gi', pid: '500' };
  const cgroups = podCgroups(failingTree, {
    allocatable: { capacity, systemReserved: {}, kubeReserved: {}, enforced: true },
    own: { uids: own, add: (uid) => void own.add(uid), remove: (uid) => void own.delete(uid) },
    log: { ...silentLog, warn: (message) => warnings.push(message) },
  });
  return { tree, own, warnings, faults, cgroups };
}

describe('the group of a run', () => {
  it('has the limits of its container, in the group of its pod', () => {
    const { cgroups, tree } = world();
    expect(cgroups.prepare(podOf('u1', limited), 'main', 3)).toBe(`${GROUP}/main.3`);
    expect(tree.read(GROUP, 'pids.max')).toBe('20');
    expect(tree.read(GROUP, 'memory.max')).toBe(String(2 ** 21));
    expect(tree.read(`${GROUP}/main.3`, 'memory.max')).toBe(String(2 ** 21));
    expect(tree.read(`${GROUP}/main.3`, 'cpu.max')).toBe('100000 100000');
    cgroups.prepare(podOf('u1', limited), 'unknown', 0);
    expect(tree.files()[`${GROUP}/unknown.0`] ?? {}).toEqual({});
    expect(groupOf(podOf('u1', limited), 'main', 3)).toBe(`${GROUP}/main.3`);
  });

  it('is recorded before it is created', () => {
    const { cgroups, own, faults } = world();
    faults.apply = GROUP;
    expect(() => cgroups.prepare(podOf('u1', limited), 'main', 0)).toThrow('EBUSY');
    expect([...own]).toEqual(['u1']);
  });

  it('has the processors that it is placed on, and no quota on exclusive ones', () => {
    const { cgroups, tree } = world();
    const pod = podOf('u1', limited);
    const exclusive: CpuPlacement = { cpus: [1, 2], memoryNodes: [0], exclusive: true };
    const asked: string[] = [];
    cgroups.usePlacement((uid, container) => {
      asked.push(`${uid}/${container}`);
      return exclusive;
    });
    cgroups.prepare(pod, 'main', 0);
    expect(new Set(asked)).toEqual(new Set(['u1/main']));
    expect(tree.read(`${GROUP}/main.0`, 'cpuset.cpus')).toBe('1-2');
    expect(tree.read(`${GROUP}/main.0`, 'cpu.max')).toBe('max 100000');
    expect(tree.read(GROUP, 'cpu.max')).toBe('max 100000');
    cgroups.usePlacement(() => ({ cpus: [3], memoryNodes: [], exclusive: false }));
    cgroups.place(pod, 'main', 0);
    cgroups.place(pod, 'main', 1);
    expect(tree.read(`${GROUP}/main.0`, 'cpuset.cpus')).toBe('3');
    expect(tree.children(GROUP)).toEqual(['main.0']);
  });

  it('is not placed without the controller', () => {
    const { cgroups, tree } = world(['cpu', 'memory']);
    const pod = podOf('u1', limited);
    cgroups.prepare(pod, 'main', 0);
    const before = JSON.stringify(tree.files());
    cgroups.place(pod, 'main', 0);
    expect(JSON.stringify(tree.files())).toBe(before);
    expect([cgroups.has('cpu'), cgroups.has('cpuset')]).toEqual([true, false]);
  });

  it('has counters of its kills, its memory and its processes', () => {
    const { cgroups, tree } = world();
    const pod = podOf('u1', limited);
    expect([cgroups.oomKills(pod, 'main', 0), cgroups.usage(pod), cgroups.containerMemory(pod, 'main', 0)]).toEqual([
      0,
      undefined,
      undefined,
    ]);
    cgroups.prepare(pod, 'main', 0);
    tree.set(`${GROUP}/main.0`, 'memory.events', 'low 0\noom_kill_group 9\noom_kill 2\n');
    tree.set(`${GROUP}/main.0`, 'memory.current', '500');
    tree.set(`${GROUP}/main.0`, 'memory.stat', 'total_inactive_file 9\ninactive_file 100\n');
    expect([cgroups.oomKills(pod, 'main', 0), cgroups.containerMemory(pod, 'main', 0)]).toEqual([2, 400]);
    tree.enter(`${GROUP}/main.0`, 41);
    expect(cgroups.processesOf(pod, 'main', 0)).toEqual([41]);
    expect(cgroups.usage(pod)).toEqual({ memoryBytes: undefined, processes: 1 });
    tree.set(GROUP, 'memory.current', '50');
    tree.set(GROUP, 'memory.stat', 'inactive_file 100');
    tree.set(GROUP, 'pids.current', '7\n');
    expect(cgroups.usage(pod)).toEqual({ memoryBytes: 0, processes: 7 });
  });
});

describe('a resize', () => {
  const sized = (limit: string) => ({ requests: { cpu: '1', memory: limit }, limits: { cpu: '2', memory: limit } });
  /** Writes of memory.max, in order. */
  function memoryWrites(tree: MemoryCgroups): string[] {
    const writes: string[] = [];
    const { apply } = tree;
    tree.apply = (path, files) => {
      if (files['memory.max'] !== undefined) writes.push(`${path.split('/').at(-1)} ${files['memory.max']}`);
      apply(path, files);
    };
    return writes;
  }

  it('raises the limits of the pod before those of the container, and lowers them after', () => {
    const { cgroups, tree } = world();
    cgroups.prepare(podOf('u1', sized('1Ki')), 'main', 0);
    const writes = memoryWrites(tree);
    cgroups.resize(podOf('u1', sized('2Ki')), [{ name: 'main', run: 0 }]);
    expect(writes.splice(0)).toEqual(['podu1 2048', 'main.0 2048']);
    cgroups.resize(podOf('u1', sized('1Ki')), [{ name: 'main', run: 0 }]);
    expect(writes).toEqual(['main.0 1024', 'podu1 1024']);
    expect(tree.read('kubepods/burstable/podu1', 'cpu.max')).toBe('200000 100000');
  });

  it('creates no group', () => {
    const { cgroups, tree } = world();
    cgroups.resize(podOf('u1', sized('1Ki')), [{ name: 'main', run: 0 }]);
    expect(tree.files()).toEqual({});
    cgroups.prepare(podOf('u1', sized('1Ki')), 'main', 0);
    cgroups.resize(podOf('u1', sized('1Ki')), [{ name: 'main', run: 1 }]);
    expect(tree.children('kubepods/burstable/podu1')).toEqual(['main.0']);
  });
});

describe('all pods', () => {
  it('have a limit together, and each class its share', () => {
    const { cgroups, tree, faults, warnings } = world();
    cgroups.applyNode([podOf('u1', limited)]);
    expect(Object.keys(tree.files()).sort()).toEqual(['kubepods', 'kubepods/besteffort', 'kubepods/burstable']);
    expect([tree.read('kubepods', 'pids.max'), tree.read('kubepods', 'memory.max')]).toEqual(['500', String(2 ** 30)]);
    expect(warnings).toEqual([]);
    faults.apply = 'kubepods';
    cgroups.applyNode([podOf('u1', { requests: { cpu: '4' } })]);
    expect(warnings).toEqual(['the limits of all pods cannot be set']);
    expect(tree.read('kubepods/burstable', 'cpu.weight')).not.toBe(tree.read('kubepods/besteffort', 'cpu.weight'));
  });

  it('use memory up to their limit, if they have one', () => {
    const { cgroups, tree } = world();
    expect(cgroups.podsMemory()).toBeUndefined();
    tree.apply('kubepods', { 'memory.max': '1000', 'memory.current': '300' });
    expect(cgroups.podsMemory()).toEqual({ limitBytes: 1_000, workingSetBytes: 300 });
    tree.apply('kubepods', { 'memory.max': 'max' });
    expect(cgroups.podsMemory()).toBeUndefined();
    const bare = world();
    bare.tree.apply('kubepods', { 'memory.max': '1000' });
    expect(bare.cgroups.podsMemory()).toBeUndefined();
  });
});

describe('a sweep', () => {
  it('removes groups of own pods that are not known, of each class, and no others', () => {
    const { cgroups, tree, own } = world();
    const names = [
      'kubepods/podmine',
      'kubepods/burstable/podknown',
      'kubepods/burstable/podother',
      'kubepods/besteffort/podgone',
      'kubepods/xpodmine',
    ];
    for (const name of names) tree.apply(name, {});
    for (const uid of ['mine', 'known', 'gone', 'without']) own.add(uid);
    cgroups.sweep(new Set(['known']));
    const left = ['kubepods', 'kubepods/burstable', 'kubepods/besteffort'].flatMap((above) => tree.children(above));
    expect(left.filter((name) => name.includes('pod')).sort()).toEqual(['podknown', 'podother', 'xpodmine']);
    // A pod with a group stays recorded until the next sweep sees that its group was removed.
    expect([...own].sort()).toEqual(['gone', 'known', 'mine']);
    cgroups.sweep(new Set(['known']));
    expect([...own]).toEqual(['known']);
  });

  it('forgets nothing when the groups cannot be listed', () => {
    const { cgroups, own, faults, warnings } = world();
    own.add('gone');
    faults.children = 'kubepods/besteffort';
    cgroups.sweep(new Set());
    expect([[...own], warnings]).toEqual([['gone'], ['control groups of removed pods cannot be listed']]);
  });

  it('continues with a group that cannot be removed', () => {
    const { cgroups, tree, own, faults, warnings } = world();
    for (const uid of ['a', 'b']) {
      own.add(uid);
      tree.apply(`kubepods/pod${uid}`, {});
    }
    faults.remove = 'kubepods/poda';
    cgroups.sweep(new Set());
    expect([tree.children('kubepods'), warnings]).toEqual([['poda'], ['a control group cannot be removed']]);
  });
});
