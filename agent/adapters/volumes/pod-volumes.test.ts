import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { KubePod } from '../../../shared/kube/types.ts';
import { podUsage } from '../runtime-exec/pod-usage.ts';
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
  const measured = { pod, containers: [], directory: rootDirectory, volumesDirectory, cgroups: undefined };
  const usage = await podUsage(measured, true);
  expect(usage.volumes.get('data')?.bytes).toBeGreaterThan(FILE_BYTES);
});
