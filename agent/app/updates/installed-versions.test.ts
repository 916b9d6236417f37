import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { updateFiles } from '../../adapters/updates/update-files.ts';
import { InstalledVersions } from './installed-versions.ts';

let directory: string;
let versions: InstalledVersions;
beforeEach(() => {
  directory = folderForTest();
  versions = new InstalledVersions(updateFiles(directory));
});

const release = (version: string) => ({ version, sha256: version.slice(0, 1).repeat(64) });
async function* content(text: string) {
  yield Buffer.from(text);
}
const files = (): readonly string[] => readdirSync(directory).sort();

async function tried(version: string) {
  const { sha256 } = release(version);
  await versions.tryNext(await versions.store(sha256, content(version)), release(version));
  const { trial, file } = await versions.start();
  if (trial === undefined) throw new Error(`no trial of ${file}`);
  return trial;
}

describe('a version that is tried', () => {
  it('is what starts, and what starts again', async () => {
    const trial = await tried('1.0.0');
    expect(trial).toMatchObject({ ...release('1.0.0'), previous: '', starts: 1 });
    expect(readFileSync(join(directory, trial.file), 'utf8')).toBe('1.0.0');
    expect((await versions.start()).trial).toMatchObject({ starts: 2 });
  });

  it('is kept with the one before when it is confirmed, and others are removed', async () => {
    const first = await tried('1.0.0');
    await versions.confirm(first);
    const second = await tried('2.0.0');
    expect(second.previous).toBe(first.file);
    await versions.confirm(second);
    expect([existsSync(join(directory, first.file)), existsSync(join(directory, second.file))]).toEqual([true, true]);
    const third = await tried('3.0.0');
    writeFileSync(join(directory, 'other.txt'), '');
    await versions.store('f'.repeat(64), content('left'));
    await versions.confirm(third);
    const link = files().filter((name) => name !== second.file && name !== third.file);
    expect(files()).toEqual(expect.arrayContaining([second.file, third.file]));
    expect(link).toEqual([link.find((name) => name !== 'other.txt'), 'other.txt'].sort());
    expect(readlinkSync(join(directory, link.find((name) => name !== 'other.txt')!))).toBe(third.file);
    expect(await versions.start()).toEqual({ file: third.file, trial: undefined });
  });

  it('is no way back from itself', async () => {
    await versions.confirm(await tried('1.0.0'));
    expect((await tried('1.0.0')).previous).toBe('');
  });

  it('is replaced by the one before when it fails, and is remembered', async () => {
    const first = await tried('1.0.0');
    await versions.confirm(first);
    const second = await tried('2.0.0');
    expect(await versions.rollBack(second, 'it crashed')).toBe(first.file);
    expect(await versions.failed()).toEqual([{ ...release('2.0.0'), message: 'it crashed' }]);
    expect(await versions.start()).toEqual({ file: first.file, trial: undefined });
    await versions.rollBack(second, 'again');
    expect(await versions.failed()).toEqual([{ ...release('2.0.0'), message: 'it crashed' }]);
  });

  it('may be installed again when it never started', async () => {
    const trial = await tried('1.0.0');
    await versions.abandon(trial);
    expect([await versions.failed(), await versions.start()]).toEqual([[], { file: '', trial: undefined }]);
  });
});

describe('a file of a version', () => {
  it('is discarded, and is not left by a download that fails', async () => {
    await versions.discard(await versions.store('a'.repeat(64), content('x')));
    async function* broken() {
      yield Buffer.from('x');
      throw new Error('connection lost');
    }
    await expect(versions.store('b'.repeat(64), broken())).rejects.toThrow('connection lost');
    expect(files()).toEqual([]);
  });

  it('that is refused is not tried again', async () => {
    await versions.refuse({ ...release('9.0.0'), message: 'signature' });
    expect(await versions.failed()).toEqual([{ ...release('9.0.0'), message: 'signature' }]);
  });
});

describe('a version without heartbeats', () => {
  const silent = async () => versions.rollBack(await tried('2.0.0'), 'silent', { isDoubtful: true });
  const failed = { ...release('2.0.0'), message: 'silent' };

  it('has failed if the version before reaches the cluster', async () => {
    expect(await versions.judge(true)).toBeUndefined();
    await silent();
    expect(await versions.failed()).toEqual([{ ...failed, isDoubtful: true }]);
    expect(await versions.judge(true)).toBeUndefined();
    expect(await versions.failed()).toEqual([failed]);
  });

  it('may be installed again if that does not reach it either, three times', async () => {
    const judged: unknown[] = [];
    for (let trial = 0; trial < 5 && (await versions.failed()).length === 0; trial += 1) {
      await silent();
      judged.push(await versions.judge(false));
    }
    expect(judged.at(-1)).toBeUndefined();
    expect(judged.slice(0, -1)).toEqual(judged.slice(0, -1).map(() => ({ ...failed, isDoubtful: true })));
    expect(judged).toHaveLength(3);
    expect(await versions.failed()).toEqual([failed]);
  });
});
