import { lstatSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { updateFiles } from './update-files.ts';

let directory: string;
beforeEach(() => {
  directory = join(folderForTest(), 'versions');
});

async function write(files: ReturnType<typeof updateFiles>, name: string, text: string): Promise<void> {
  const file = await files.create(name);
  await file.write(Buffer.from(text));
  await file.sync();
  await file.close();
}

describe('the directory of installed agents', () => {
  it('has no files before there is one', async () => {
    const files = updateFiles(directory);
    expect([await files.names(), await files.readText('a'), await files.readLink('a')]).toEqual([
      [],
      undefined,
      undefined,
    ]);
    const inFile = updateFiles(join(directory, 'file', 'x'));
    await write(files, 'file', '');
    expect(await inFile.names()).toEqual([]);
  });

  it('is created for its owner alone, with files of its owner', async () => {
    const files = updateFiles(directory);
    await write(files, 'agent.mjs', 'one');
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    expect(statSync(join(directory, 'agent.mjs')).mode & 0o777).toBe(0o600);
    expect([await files.names(), await files.readText('agent.mjs')]).toEqual([['agent.mjs'], 'one']);
    await files.syncNames();
    await files.rename('agent.mjs', 'b.mjs');
    expect(await files.names()).toEqual(['b.mjs']);
    await files.remove('b.mjs');
    await files.remove('b.mjs');
    expect(await files.names()).toEqual([]);
  });

  it('replaces a file, and a link without writing to its target', async () => {
    const files = updateFiles(directory);
    await write(files, 'target', 'kept');
    symlinkSync('target', join(directory, 'link'));
    await write(files, 'link', 'new');
    await write(files, 'target', 'kept');
    expect([readFileSync(join(directory, 'link'), 'utf8'), lstatSync(join(directory, 'link')).isFile()]).toEqual([
      'new',
      true,
    ]);
  });

  it.each([true, false])('names the current agent by a link, where there are links: %s', async (hasLinks) => {
    const files = updateFiles(directory, hasLinks);
    await write(files, 'agent.mjs', 'x');
    await files.link('current', 'agent.mjs');
    expect(await files.readLink('current')).toBe('agent.mjs');
    expect(lstatSync(join(directory, 'current')).isSymbolicLink()).toBe(hasLinks);
    writeFileSync(join(directory, 'other'), 'agent.mjs');
    expect(await files.readLink('other')).toBe(hasLinks ? undefined : 'agent.mjs');
  });

  it('uses links of this system', async () => {
    const files = updateFiles(directory);
    await write(files, 'agent.mjs', 'x');
    await files.link('current', 'agent.mjs');
    expect(lstatSync(join(directory, 'current')).isSymbolicLink()).toBe(process.platform !== 'win32');
  });

  it('reports what cannot be read for another reason', async () => {
    const files = updateFiles(directory);
    await write(files, 'a', '');
    await expect(updateFiles(join(directory, 'x'.repeat(300))).names()).rejects.toThrow(/ENAMETOOLONG/);
  });
});
