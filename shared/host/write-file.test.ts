import { existsSync, mkdirSync } from 'node:fs';
import { beforeEach, expect, it, vi } from 'vitest';
import { makeDirectory } from './write-file.ts';

vi.mock('node:fs', async (original) => ({
  ...(await original<typeof import('node:fs')>()),
  existsSync: vi.fn(),
  mkdirSync: vi.fn(),
}));

beforeEach(() => {
  vi.mocked(mkdirSync).mockImplementation(() => {
    throw new Error('refused');
  });
});

it.each(['a/b', '/a/b'])('a directory %s that cannot be made is refused when no parent can be seen either', (path) => {
  vi.mocked(existsSync).mockReturnValue(false);
  expect(() => makeDirectory(path)).toThrow('refused');
});

it('a directory that another process makes meanwhile is as good as our own', () => {
  vi.mocked(existsSync).mockReturnValueOnce(false).mockReturnValue(true);
  expect(() => makeDirectory('/a')).not.toThrow();
});
