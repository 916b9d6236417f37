import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { WANTED_CONTROLLERS } from '../../agent/adapters/cgroup/find-tree.ts';
import { moveProcesses, UnifiedTree } from '../../agent/adapters/cgroup/unified-tree.ts';
import { identify, isAlive, readBootId } from '../../agent/adapters/runtime-exec/process-table.ts';
import { memoryCgroups } from '../support/memory-cgroups.ts';
import { cgroupsMissing, NO_CGROUPS, realGroup } from '../support/real-cgroups.ts';
import { defineCgroupTreeContract, type TreeUnderTest } from './cgroup-tree.ts';

defineCgroupTreeContract('in memory', () => {
  const living = new Set<number>();
  const tree = memoryCgroups({ exists: (pid) => living.has(pid), onKill: (pid) => living.delete(pid) });
  return {
    tree,
    start() {
      living.add(1);
      return {
        pid: 1,
        async release() {
          living.add(2);
          tree.enter('pods/a', 2);
          return 2;
        },
      };
    },
    isAlive: (pid) => living.has(pid),
    dispose() {},
  };
});

const openReal = (killFile?: string) => (): TreeUnderTest => {
  const group = realGroup(killFile);
  const bootId = readBootId();
  return {
    tree: group.tree,
    start() {
      const script = 'read -r _; setsid sleep 300 & echo $!; wait';
      const child = spawn('/bin/sh', ['-c', script], { stdio: ['pipe', 'pipe', 'ignore'] });
      return {
        pid: child.pid ?? 0,
        release() {
          child.stdin.end('go\n');
          return new Promise((resolve) => child.stdout.once('data', (text) => resolve(Number(text))));
        },
      };
    },
    isAlive(pid) {
      const found = identify(pid, bootId);
      return found !== undefined && isAlive(found, bootId);
    },
    dispose: () => group.dispose(),
  };
};

const suite = cgroupsMissing === undefined ? describe : describe.skip;
const reason = cgroupsMissing === undefined ? '' : ` (skipped: ${NO_CGROUPS}: ${cgroupsMissing})`;
suite(`the group of a unit${reason}`, () => {
  it('passes its controllers down after its process was moved', async () => {
    const group = realGroup();
    const unit = join(group.directory, 'unit-of-pods');
    mkdirSync(unit);
    const child = spawn('/bin/sleep', ['300'], { stdio: 'ignore' });
    const exited = new Promise((resolve) => child.once('exit', resolve));
    group.tree.enter('unit-of-pods', child.pid ?? 0);
    moveProcesses(unit, 'unit');
    moveProcesses(unit, 'unit');
    expect(readFileSync(join(unit, 'unit', 'cgroup.procs'), 'utf8')).toBe(`${child.pid}\n`);
    expect([...new UnifiedTree(unit, WANTED_CONTROLLERS).controllers]).toEqual([...group.tree.controllers]);
    child.kill('SIGKILL');
    await exited;
    group.dispose();
  });
});

const skip = cgroupsMissing === undefined ? undefined : `${NO_CGROUPS}: ${cgroupsMissing}`;
defineCgroupTreeContract('cgroup v2 of the kernel', openReal(), skip);
defineCgroupTreeContract('cgroup v2 without cgroup.kill', openReal('missing'), skip);
