import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { plainVolumes } from './plain-volumes.ts';

const NAME = { podUid: 'uid', volume: 'config' };

function volumesForTest() {
  const rootDirectory = folderForTest();
  const volumes = plainVolumes(rootDirectory);
  const directory = join(rootDirectory, 'volumes/uid/config');
  const write = (texts: Readonly<Record<string, string>>): void =>
    volumes.writeFiles(
      NAME,
      new Map(Object.entries(texts).map(([name, text]) => [name, { bytes: Buffer.from(text), mode: 0o644 }])),
      { groupId: undefined, inMemory: false },
    );
  const read = (): Record<string, string> =>
    Object.fromEntries(
      readdirSync(directory, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => join(parentPath, name))
        .map((path) => [path.slice(directory.length + 1), readFileSync(path, 'utf8')]),
    );
  return { volumes, directory, write, read };
}

it('a volume has exactly its files: changed ones are replaced, others go, equal ones stay as they are', () => {
  const { directory, write, read } = volumesForTest();
  write({ same: 'a', changed: 'b', gone: 'c', 'sub/kept': 'd', 'sub/gone': 'e' });
  const before = statSync(join(directory, 'same'), { bigint: true });
  write({ same: 'a', changed: 'B', 'sub/kept': 'd', 'new/file': 'f' });
  expect(read()).toEqual({ same: 'a', changed: 'B', 'sub/kept': 'd', 'new/file': 'f' });
  expect(statSync(join(directory, 'same'), { bigint: true }).ino).toBe(before.ino);
});

it.each(['../outside', 'sub/../../outside', '.', 'sub/..'])('a file %j is refused', (name) => {
  const { write, read } = volumesForTest();
  expect(() => write({ [name]: 'x' })).toThrow(`invalid path: must not leave the volume: ${name}`);
  expect(read()).toEqual({});
});

it('an emptyDir is made once and keeps its content; the pod’s volumes are removed together', async () => {
  const { volumes, directory, read } = volumesForTest();
  const options = { groupId: undefined, inMemory: false };
  volumes.makeEmptyDir(NAME, options);
  writeFileSync(join(directory, 'data'), 'x');
  volumes.makeEmptyDir(NAME, options);
  expect(read()).toEqual({ data: 'x' });
  const other = join(directory, '../../other/config');
  mkdirSync(other, { recursive: true });
  await volumes.remove('uid');
  await volumes.remove('uid');
  expect([directory, join(directory, '..'), other].map((path) => existsSync(path))).toEqual([false, false, true]);
});

it('a directory has the same identity by each of its paths, and another has another', () => {
  const { volumes, directory } = volumesForTest();
  mkdirSync(join(directory, 'sub'), { recursive: true });
  expect(volumes.identityOf(`${directory}/sub/..`)).toBe(volumes.identityOf(directory));
  expect(volumes.identityOf(join(directory, 'sub'))).not.toBe(volumes.identityOf(directory));
});
