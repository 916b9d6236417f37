/** The size of a new controller: the diff in test/fixtures/empty-controller.patch adds one that does nothing. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';

const FILES_MAX = 6;
const patch = join(repositoryRoot, 'test/fixtures/empty-controller.patch');

describe('a new controller', () => {
  it('is added by a diff of at most six files, none of them under cdk', () => {
    const files = [...readFileSync(patch, 'utf8').matchAll(/^\+\+\+ b\/(.*)$/gm)].map(([, file]) => file!);
    expect(files.length).toBeGreaterThan(0);
    expect(files.length).toBeLessThanOrEqual(FILES_MAX);
    expect(files.filter((file) => file.startsWith('cdk/'))).toEqual([]);
  });

  it('is described by a diff that still applies', () => {
    const { status, stderr } = spawnSync('git', ['apply', '--check', patch], { cwd: repositoryRoot, encoding: 'utf8' });
    expect(status, stderr).toBe(0);
  });
});
