import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { stateGenerations } from './state-generations.ts';

const directoryForTest = (): string => join(folderForTest(), 'remembered');
const texts = async (directory: string): Promise<string[]> =>
  (await stateGenerations(directory).read()).map((each) => (each.kind === 'read' ? each.text : 'failed'));

it('are the newest two, newest first, for their owner alone', async () => {
  const directory = directoryForTest();
  expect(await texts(directory)).toEqual([]);
  for (const text of ['1', '2', '3']) await stateGenerations(directory).write(text);
  expect(await texts(directory)).toEqual(['3', '2']);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  for (const name of readdirSync(directory)) expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
});

it('leave one when the process was killed between the two renames', async () => {
  const directory = directoryForTest();
  for (const text of ['1', '2']) await stateGenerations(directory).write(text);
  rmSync(join(directory, 'pods.json'));
  expect(await stateGenerations(directory).read()).toEqual([
    { kind: 'failed', why: 'pods.json is missing' },
    { kind: 'read', text: '1' },
  ]);
  await stateGenerations(directory).write('3');
  expect(await texts(directory)).toEqual(['3', '1']);
});

it('are read as they were written or not at all, wherever one was cut off or changed', async () => {
  const directory = directoryForTest();
  const file = join(directory, 'pods.json');
  for (const text of ['old', '{"a":\n"ä"}']) await stateGenerations(directory).write(text);
  expect(await texts(directory)).toEqual(['{"a":\n"ä"}', 'old']);
  const bytes = readFileSync(file);
  for (let index = 0; index < bytes.length; index += 1) {
    const changed = Buffer.from(bytes);
    changed[index]! ^= 1;
    for (const other of [bytes.subarray(0, index), changed]) {
      writeFileSync(file, other);
      expect(await texts(directory)).toEqual(['failed', 'old']);
    }
  }
});

it('keep the good one when the newest is torn and another is written', async () => {
  const directory = directoryForTest();
  for (const text of ['good', 'torn']) await stateGenerations(directory).write(text);
  writeFileSync(join(directory, 'pods.json'), 'to');
  await stateGenerations(directory).write('next');
  expect(await texts(directory)).toEqual(['next', 'good']);
});

it('can be removed, also when there are none', async () => {
  const directory = directoryForTest();
  await stateGenerations(directory).remove();
  await stateGenerations(directory).write('1');
  await stateGenerations(directory).remove();
  expect(readdirSync(join(directory, '..'))).toEqual([]);
});

it('say which one cannot be read, and read the other one', async () => {
  const directory = directoryForTest();
  for (const text of ['1', '2']) await stateGenerations(directory).write(text);
  rmSync(join(directory, 'pods.json'));
  await stateGenerations(join(directory, 'pods.json')).write('a directory in its place');
  expect(await stateGenerations(directory).read()).toEqual([
    { kind: 'failed', why: expect.stringContaining('EISDIR') },
    { kind: 'read', text: '1' },
  ]);
});

it('cannot be written where a file has the name of the directory', async () => {
  const directory = directoryForTest();
  writeFileSync(directory, '');
  await expect(stateGenerations(directory).write('1')).rejects.toMatchObject({ code: 'EEXIST' });
});
