import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { executableFault, quoted, SHELL, SHELL_NAME } from './shell.ts';

it('a quoted text is one argument of a shell, as it was', () => {
  for (const text of ['', 'a b', "it's", "''", '$HOME `x` \\ "', 'two\nlines', '-n'])
    expect(execFileSync(SHELL, ['-c', `printf %s ${quoted(text)}`]).toString(), text).toBe(text);
});

it('a path can be executed, or it is reported why not', () => {
  const root = folderForTest();
  writeFileSync(join(root, 'program'), '', { mode: 0o755 });
  chmodSync(join(root, 'program'), 0o755);
  writeFileSync(join(root, 'text'), '', { mode: 0o644 });
  mkdirSync(join(root, 'directory'));
  expect(executableFault(join(root, 'program'))).toBeUndefined();
  expect(executableFault(join(root, 'text'))).toBe('EACCES');
  expect(executableFault(join(root, 'directory'))).toBe('EACCES');
  expect(executableFault(join(root, 'none'))).toBe('ENOENT');
  expect(executableFault(join(root, 'text/below'))).toBe('ENOENT');
});

it('a shell has variables of some names', () => {
  for (const name of ['A', '_', 'a9_Z']) expect(SHELL_NAME.test(name), name).toBe(true);
  for (const name of ['', '9a', 'a-b', 'a.b', ' a', 'a ']) expect(SHELL_NAME.test(name), name).toBe(false);
});
