import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { podUsage } from '../runtime-exec/pod-usage.ts';
import { linuxProcesses } from '../runtime-exec/process-table.ts';
import { podVolumes } from './pod-volumes.ts';

/** 20 directories with names of 250 characters: longer than PATH_MAX. */
const MAKE_DEEP = 'n=$(printf %0250d 0); i=0; while [ $i -lt 20 ]; do mkdir $n; cd -P $n; i=$((i + 1)); done';
const FILE_BYTES = 100_000;

let rootDirectory: string;
beforeEach(() => {
  rootDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-volumes-'));
});
afterEach(() => rmSync(rootDirectory, { recursive: true, force: true }));

it('measures a volume with directories that are too deep for a path', async () => {
  const volumes = podVolumes({ rootDirectory, memoryDirectory: undefined });
  const name = { podUid: 'uid', volume: 'data' };
  volumes.makeEmptyDir(name, { groupId: undefined, inMemory: false });
  const script = `head -c ${FILE_BYTES} /dev/zero >file; ${MAKE_DEEP}`;
  execFileSync('/bin/bash', ['-c', script], { cwd: volumes.pathOf(name) });
  expect(await volumes.usedBytes(name)).toBeGreaterThan(FILE_BYTES);

  const pod: KubePod = { metadata: { name: 'web', uid: 'uid' } };
  const volumesDirectory = join(rootDirectory, 'volumes/uid');
  const measured = {
    pod,
    containers: [],
    directory: rootDirectory,
    volumesDirectory,
    cgroups: undefined,
    table: linuxProcesses,
  };
  const usage = await podUsage(measured, true);
  expect(usage.volumes.get('data')?.bytes).toBeGreaterThan(FILE_BYTES);
});

it('removes a volume of any size without blocking the agent', async () => {
  const volumes = podVolumes({ rootDirectory, memoryDirectory: join(rootDirectory, 'memory') });
  const name = { podUid: 'uid', volume: 'data' };
  volumes.makeEmptyDir(name, { groupId: undefined, inMemory: false });
  volumes.makeEmptyDir({ ...name, volume: 'memory' }, { groupId: undefined, inMemory: true });
  const script = `i=0; while [ $i -lt 2000 ]; do : >file-$i; i=$((i + 1)); done; ${MAKE_DEEP}`;
  execFileSync('/bin/bash', ['-c', script], { cwd: volumes.pathOf(name) });
  let isRemoved = false;
  let turns = 0;
  const removal = volumes.remove('uid').then(() => {
    isRemoved = true;
  });
  while (!isRemoved) {
    await setImmediate();
    if (!isRemoved) turns += 1;
  }
  await removal;
  expect(turns).toBeGreaterThan(0);
  expect([volumes.podUids(), existsSync(join(rootDirectory, 'memory/uid'))]).toEqual([[], false]);
});
