/**
 * What an agent does with volumes on a file system with project quotas, and what the file system then has. In a test
 * with a file system in memory; `node limited-volumes.ts MOUNT-POINT` does it on a real one, and fills a volume.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runProgram } from '../../agent/adapters/system/run-program.ts';
import { claimDirectories } from '../../agent/adapters/volumes/claim-directories.ts';
import { projectQuotas, type QuotaMachine } from '../../agent/adapters/volumes/project-quota.ts';
import { listedProjects, quotaState } from '../../agent/rules/project-quota.ts';

const MEBIBYTE = 1024 * 1024;

/** @param fill writes so many bytes into a directory, as a pod */
export async function limitedVolumes(
  root: string,
  { run, ...machine }: Required<QuotaMachine>,
  fill: (directory: string, bytes: number) => unknown,
) {
  const quotas = projectQuotas({ ...machine, run });
  const directories = claimDirectories(root, quotas);
  const pathOf = (name: string): string => join(root, 'claims', name);
  const projectOf = async (path: string) => listedProjects(await run(['lsattr', '-pd', path]))[0] ?? 0;
  const stateOf = async (project: number) =>
    quotaState(await run(['xfs_quota', '-x', '-f', '-c', `quota -p -N -n -v -b -i ${project}`, root]));
  const limitOf = async (name: string) => (await stateOf(await projectOf(pathOf(name)))).limitKibibytes;

  const made = [await directories.make('pvc-a', MEBIBYTE), await directories.make('pvc-b', MEBIBYTE)];
  const project = await projectOf(pathOf('pvc-a'));
  const again = await directories.make('pvc-a', MEBIBYTE);
  // As a run that was killed before it set the limit.
  await quotas.release(pathOf('pvc-b'));
  const torn = await limitOf('pvc-b');
  await directories.make('pvc-b', MEBIBYTE);
  // As a volume that was made before the file system had quotas.
  mkdirSync(join(pathOf('pvc-c'), 'in it'), { recursive: true });
  writeFileSync(join(pathOf('pvc-c'), 'in it/file'), 'text');
  await directories.make('pvc-c', MEBIBYTE);
  const projects = await Promise.all(['pvc-a', 'pvc-b', 'pvc-c'].map((name) => projectOf(pathOf(name))));
  const limits = await Promise.all(['pvc-a', 'pvc-b', 'pvc-c'].map(limitOf));
  const filled = fill(pathOf('pvc-a'), 4 * MEBIBYTE);
  const other = fill(pathOf('pvc-b'), MEBIBYTE / 2);
  await directories.remove('pvc-a');
  return {
    unlimited: [...made, again].map((each) => each.unlimited),
    isSameProject: projects[0] === project,
    projects: new Set(projects).size,
    contentProject: (await projectOf(join(pathOf('pvc-c'), 'in it/file'))) === projects[2],
    torn,
    limits,
    filled,
    other,
    isUsedAfterRemoval: (await stateOf(project)).isUsed,
    fault: await quotas.fault(join(root, 'claims')),
  };
}

/** Not as root: ext4 does not limit it. In the working directory: a pod has no path to it. */
function fillAsPod(cwd: string, bytes: number) {
  const { status, stderr } = spawnSync('/bin/sh', ['-c', `head -c ${bytes} /dev/zero >file`], {
    cwd,
    uid: 65_534,
    encoding: 'utf8',
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
  });
  const isFull = /No space left on device|Disk quota exceeded/.test(stderr);
  return { status, isFull, isWithin: statSync(join(cwd, 'file')).size <= MEBIBYTE };
}

if (process.argv[1] === import.meta.filename) {
  const run = (args: readonly string[]) =>
    runProgram('/usr/bin/env', args, { timeoutMs: 20_000, outputBytesMax: MEBIBYTE });
  const machine = { fileRoot: '/', isRoot: true, run };
  console.log(JSON.stringify(await limitedVolumes(process.argv[2] ?? '', machine, fillAsPod)));
}
