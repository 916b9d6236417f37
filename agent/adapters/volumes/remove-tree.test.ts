import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { removeTree } from './remove-tree.ts';

it('a directory is removed with everything in it, and nothing behind its links', async () => {
  const root = folderForTest();
  const [tree, kept] = [join(root, '-rf'), join(root, 'kept')];
  mkdirSync(join(tree, 'a/b'), { recursive: true });
  mkdirSync(kept);
  writeFileSync(join(kept, 'file'), '');
  symlinkSync(kept, join(tree, 'link'));
  await removeTree(tree);
  expect([existsSync(tree), existsSync(join(kept, 'file'))]).toEqual([false, true]);
  await removeTree(tree);
  // A link itself, also to nothing.
  symlinkSync(join(root, 'none'), tree);
  await removeTree(tree);
});

it('what cannot be removed is reported in one line', async () => {
  const fault = await removeTree('/proc/self/task').catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(Error);
  expect((fault as Error).message).toMatch(/^\S*rm: [^\n]+$/);
});
