import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { shellPod, stateWithin, uidOf } from '../../../test/contract/pod-runtime.ts';
import { silentLog } from '../../../test/support/agent-api.ts';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { memoryCgroups, podCgroups } from '../../../test/support/memory-cgroups.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import { CgroupError } from '../../ports/cgroup-tree.ts';
import type { PodRuntime } from '../../ports/pod-runtime.ts';
import { execRuntime } from '../runtime-exec/runtime-exec.ts';
import { ownPods } from './own-pods.ts';

let rootDirectory: string;
let directory: string;
let runtime: PodRuntime | undefined;
beforeEach(() => {
  rootDirectory = folderForTest();
  directory = join(rootDirectory, 'cgroups');
});
afterEach(async () => {
  for (const { uid } of (await runtime?.pods()) ?? []) await runtime?.stop(uid, 0);
  await runtime?.close();
});

function open(tree = memoryCgroups()) {
  const time = new SteppedTime(0);
  const cgroups = podCgroups(tree, { own: ownPods(directory) });
  runtime = execRuntime({ rootDirectory, time, log: silentLog, hostIp: () => undefined, cgroups });
  return { tree, time, runtime };
}

describe('the own pods in the tree of control groups', () => {
  it('are empty files in a directory of the agent, written once', () => {
    directory = join(directory, 'deep');
    const own = ownPods(directory);
    expect([...own.uids]).toEqual([]);
    own.add('a');
    own.add('b');
    expect([[...own.uids], readdirSync(directory), readFileSync(join(directory, 'a'), 'utf8')]).toEqual([
      ['a', 'b'],
      ['a', 'b'],
      '',
    ]);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    rmSync(join(directory, 'a'));
    own.add('a');
    expect(readdirSync(directory)).toEqual(['b']);
    own.remove('b');
    own.remove('b');
    expect([[...own.uids], readdirSync(directory), [...ownPods(directory).uids]]).toEqual([['a'], [], []]);
  });

  it('are swept although the file of a removed one cannot be removed, as on a disk that is read-only', async () => {
    // The removal of a file refuses a directory.
    mkdirSync(join(directory, 'a-bad'), { recursive: true });
    writeFileSync(join(directory, 'b-gone'), '');
    const { tree, time } = open();
    for (const round of [1, 2]) {
      tree.apply('kubepods/podb-gone', {});
      tree.apply('kubepods/podother', {});
      await time.pass(10_000);
      expect(tree.children('kubepods'), `round ${round}`).toEqual(['podother']);
    }
  });

  it('are swept again after a sweep that could not list them, as without free descriptors', async () => {
    mkdirSync(directory);
    writeFileSync(join(directory, 'gone'), '');
    const cgroups = memoryCgroups();
    let canList = false;
    const { tree, time } = open({
      ...cgroups,
      children(path) {
        if (!canList) throw new CgroupError('EMFILE');
        return cgroups.children(path);
      },
    });
    tree.apply('kubepods/podgone', {});
    await time.pass(10_000);
    expect(cgroups.children('kubepods')).toEqual(['podgone']);
    expect(readdirSync(directory)).toEqual(['gone']);
    canList = true;
    await time.pass(10_000);
    expect(cgroups.children('kubepods')).toEqual([]);
    await time.pass(10_000);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('wait while they cannot be recorded, and start then', async () => {
    writeFileSync(directory, 'no directory');
    const { time, runtime: exec } = open();
    const pod = shellPod(['true']);
    await exec.start(pod);
    expect(await stateWithin(exec, pod, 'waiting')).toMatchObject({ reason: 'CreateContainerError' });
    rmSync(directory);
    await time.pass(10_000);
    expect(await stateWithin(exec, pod, 'terminated')).toMatchObject({ exitCode: 0 });
    expect(readdirSync(directory)).toEqual([uidOf(pod)]);
  });
});
