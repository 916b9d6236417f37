import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { openedBelow } from '../../../test/support/opened-below.ts';
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

const NAME = { podUid: 'uid', volume: 'data' };
const onDisk = { groupId: undefined, inMemory: false };
const modeOf = (path: string): number => statSync(path).mode & 0o7777;

describe('a subPath', () => {
  function volume() {
    const volumes = podVolumes({ rootDirectory, memoryDirectory: undefined });
    volumes.makeEmptyDir(NAME, onDisk);
    const outside = join(realpathSync(rootDirectory), 'outside');
    mkdirSync(outside);
    return { volumes, path: volumes.pathOf(NAME), outside };
  }

  it('is made where it is missing, one directory after the other, and stays as it is', () => {
    const { volumes, path } = volume();
    expect(volumes.subPathOf(path, 'a/b')).toBe(join(path, 'a/b'));
    expect([modeOf(join(path, 'a')), modeOf(join(path, 'a/b'))]).toEqual([0o750, 0o750]);
    chmodSync(join(path, 'a'), 0o700);
    expect(volumes.subPathOf(path, 'a/c/d')).toBe(join(path, 'a/c/d'));
    expect(modeOf(join(path, 'a'))).toBe(0o700);
    writeFileSync(join(path, 'file'), '');
    expect(volumes.subPathOf(path, 'file')).toBe(join(path, 'file'));
    expect(volumes.subPathOf(path, '')).toBe(path);
  });

  it('may follow a link within the volume', () => {
    const { volumes, path } = volume();
    mkdirSync(join(path, 'real'));
    symlinkSync('real', join(path, 'link'));
    expect(volumes.subPathOf(path, 'link')).toBe(join(path, 'real'));
    expect(volumes.subPathOf(path, 'link/new')).toBe(join(path, 'real/new'));
  });

  it.each(['..', '../other', '/etc', 'a/../..', '../data-2'])('%s is outside of the volume', (subPath) => {
    const { volumes, path } = volume();
    expect(() => volumes.subPathOf(path, subPath)).toThrow(`subPath "${subPath}" is outside the volume`);
  });

  it('does not leave the volume by a link, and makes nothing behind it', () => {
    const { volumes, path, outside } = volume();
    symlinkSync(outside, join(path, 'link'));
    expect(() => volumes.subPathOf(path, 'link')).toThrow(`subPath "link" not within volume path ${path}`);
    expect(() => volumes.subPathOf(path, 'link/a/b')).toThrow(`subPath link/a/b not within volume path ${path}`);
    expect(readdirSync(outside)).toEqual([]);
    symlinkSync(join(outside, 'none'), join(path, 'nowhere'));
    expect(() => volumes.subPathOf(path, 'nowhere')).toThrow('ENOENT');
    writeFileSync(join(path, 'file'), '');
    expect(() => volumes.subPathOf(path, 'file/below')).toThrow('ENOTDIR');
  });
});

it('the identity of a file is that behind no link, and keeps no file open', () => {
  const volumes = podVolumes({ rootDirectory, memoryDirectory: undefined });
  const directory = realpathSync(rootDirectory);
  mkdirSync(join(directory, 'real'));
  const file = join(directory, 'real/file');
  writeFileSync(file, '');
  symlinkSync('real', join(directory, 'link'));
  const { dev, ino } = statSync(file, { bigint: true });
  expect([volumes.identityOf(file), openedBelow(directory)]).toEqual([`${dev}:${ino}`, []]);
  const changed = join(directory, 'link/file');
  expect(() => volumes.identityOf(changed)).toThrow(`${changed} changed while it was checked`);
});

describe('a path of the machine', () => {
  const check = (path: string, type: string): string => {
    try {
      podVolumes({ rootDirectory, memoryDirectory: undefined }).checkHostPath(join(rootDirectory, path), type);
      return 'fits';
    } catch (cause) {
      return (cause as Error).message.replace(join(rootDirectory, path), 'PATH');
    }
  };

  it('is of its type', async () => {
    mkdirSync(join(rootDirectory, 'directory'));
    writeFileSync(join(rootDirectory, 'file'), 'x');
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(rootDirectory, 'socket'), resolve));
    const of = (type: string) => ['directory', 'file', 'socket'].map((path) => check(path, type));
    const not = (name: string) => `hostPath type check failed: PATH is not ${name}`;
    const directory = ['fits', not('a directory'), not('a directory')];
    const file = [not('a file'), 'fits', not('a file')];
    expect(of('')).toEqual(['fits', 'fits', 'fits']);
    expect([of('Directory'), of('DirectoryOrCreate')]).toEqual([directory, directory]);
    expect([of('File'), of('FileOrCreate')]).toEqual([file, file]);
    expect(of('Socket')).toEqual([not('a socket file'), not('a socket file'), 'fits']);
    expect(of('CharDevice')).toEqual(Array.from({ length: 3 }, () => not('a character device')));
    expect(of('BlockDevice')).toEqual(Array.from({ length: 3 }, () => not('a block device')));
    expect(check('file', 'Other')).toBe('Other is an invalid volume type');
    await new Promise((resolve) => server.close(resolve));
  });

  it('is made where its type allows that', () => {
    for (const type of ['Directory', 'File', 'Socket']) expect(check('missing', type)).toMatch(/^hostPath type check/);
    expect(existsSync(join(rootDirectory, 'missing'))).toBe(false);
    for (const [path, type] of Object.entries({ untyped: '', made: 'DirectoryOrCreate', file: 'FileOrCreate' })) {
      expect(check(path, type)).toBe('fits');
    }
    expect(['untyped', 'made'].map((path) => statSync(join(rootDirectory, path)).isDirectory())).toEqual([true, true]);
    const file = statSync(join(rootDirectory, 'file'));
    expect([file.isFile(), file.size]).toEqual([true, 0]);
  });

  it('has no parts that lead up', () => {
    const volumes = podVolumes({ rootDirectory, memoryDirectory: undefined });
    expect(() => volumes.checkHostPath('../up', '')).toThrow("invalid HostPath `../up`: must not contain '..'");
  });
});

it('a volume leads to a directory, or to one in memory, and to another one later', async () => {
  const memoryDirectory = join(rootDirectory, 'memory');
  const volumes = podVolumes({ rootDirectory, memoryDirectory });
  const path = join(rootDirectory, 'volumes/uid/data');
  expect(volumes.linkedPath(NAME)).toBeUndefined();
  for (const directory of ['one', 'two']) {
    mkdirSync(join(rootDirectory, directory));
    volumes.linkTo(NAME, join(rootDirectory, directory));
    volumes.linkTo(NAME, join(rootDirectory, directory));
    expect(volumes.linkedPath(NAME)).toBe(join(rootDirectory, directory));
  }
  expect(modeOf(join(rootDirectory, 'volumes/uid'))).toBe(0o700);
  volumes.makeEmptyDir({ ...NAME, volume: 'emptyDir' }, onDisk);
  volumes.linkTo({ ...NAME, volume: 'emptyDir' }, join(rootDirectory, 'two'));
  expect(volumes.linkedPath({ ...NAME, volume: 'emptyDir' })).toBe(join(rootDirectory, 'two'));
  writeFileSync(join(rootDirectory, 'file'), '');
  expect(() => volumes.linkTo(NAME, join(rootDirectory, 'file'))).toThrow('file is not a directory');
  volumes.makeEmptyDir(NAME, { groupId: undefined, inMemory: true });
  const { ino } = lstatSync(path, { bigint: true });
  volumes.makeEmptyDir(NAME, { groupId: undefined, inMemory: true });
  expect(lstatSync(path, { bigint: true }).ino).toBe(ino);
  expect(readlinkSync(path)).toBe(join(memoryDirectory, 'uid/data'));
  expect([modeOf(path), modeOf(join(memoryDirectory, 'uid'))]).toEqual([0o777, 0o700]);
  expect(volumes.podUids()).toEqual(['uid']);
  await volumes.remove('uid');
  expect([volumes.podUids(), readdirSync(memoryDirectory)]).toEqual([[], []]);
  expect(existsSync(join(rootDirectory, 'two'))).toBe(true);
});

it('a volume is below directories that only the agent enters, and its files are written once', () => {
  const volumes = podVolumes({ rootDirectory, memoryDirectory: undefined });
  const ownGroup = process.getgid?.() ?? 0;
  const bytes = Buffer.from('1');
  const write = (groupId: number | undefined) =>
    volumes.writeFiles(NAME, new Map([['a', { bytes, mode: 0o600 }]]), { groupId, inMemory: false });
  write(ownGroup);
  const directory = volumes.pathOf(NAME);
  expect(['volumes', 'volumes/uid'].map((path) => modeOf(join(rootDirectory, path)))).toEqual([0o700, 0o700]);
  expect([modeOf(directory) & 0o777, modeOf(join(directory, 'a'))]).toEqual([0o755, 0o640]);
  chmodSync(join(directory, 'a'), 0o644);
  write(ownGroup);
  expect(modeOf(join(directory, 'a'))).toBe(0o644);
});

it('the bytes of a volume count a file with two names once', async () => {
  const volumes = podVolumes({ rootDirectory, memoryDirectory: undefined });
  expect(volumes.podUids()).toEqual([]);
  volumes.makeEmptyDir(NAME, onDisk);
  const path = volumes.pathOf(NAME);
  mkdirSync(join(path, 'a/b'), { recursive: true });
  writeFileSync(join(path, 'a/b/file'), 'x'.repeat(100_000));
  const once = await volumes.usedBytes(NAME);
  const blocks = ['a', 'a/b', 'a/b/file'].reduce((sum, each) => sum + statSync(join(path, each)).blocks, 0);
  expect(once).toBe(blocks * 512);
  linkSync(join(path, 'a/b/file'), join(path, 'second'));
  expect(await volumes.usedBytes(NAME)).toBe(once);
  await expect(volumes.usedBytes({ ...NAME, volume: 'none' })).rejects.toThrow('ENOENT');
  expect([volumes.isFile(path), volumes.isFile(join(path, 'second'))]).toEqual([false, true]);
});

it('the bytes of a volume are those of its first files, up to a bound', async () => {
  const volumesOf = (entriesMax: number) => podVolumes({ rootDirectory, memoryDirectory: undefined, entriesMax });
  volumesOf(0).makeEmptyDir(NAME, onDisk);
  const path = volumesOf(0).pathOf(NAME);
  for (const file of ['a', 'b', 'c']) writeFileSync(join(path, file), 'x'.repeat(50_000));
  const { blocks } = statSync(join(path, 'a'));
  const bytes = await Promise.all([0, 2, 3, 4].map((entriesMax) => volumesOf(entriesMax).usedBytes(NAME)));
  expect(bytes).toEqual([0, 2, 3, 3].map((files) => files * blocks * 512));
});
