/** Commands of contributors that have options print them, and do nothing else. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { repositoryRoot } from '../cdk/lib/function-names.ts';

const { scripts } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>;
};
const NAMES = [
  ...['simulate', 'sim', 'iam-proof', 'cost', 'agent', 'agent:release', 'release', 'peer'],
  ...['mutants', 'kinds', 'bootstrap-token', 'nodes-documentation'],
];

it.each(NAMES)('npm run %s -- --help', (name) => {
  const [node, ...words] = scripts[name]?.split(' ') ?? [];
  expect(node).toBe('node');
  const { status, stdout, stderr } = spawnSync(process.execPath, [...words, '--help'], {
    cwd: repositoryRoot,
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^usage:/i);
});

it.each(['fleet', 'cloud', 'machine'])('nodekeeper demo %s --help', (name) => {
  const { status, stdout } = spawnSync(process.execPath, ['cli/bin/nodekeeper.ts', 'demo', name, '--help'], {
    cwd: repositoryRoot,
    encoding: 'utf8',
  });
  expect([status, stdout]).toEqual([0, expect.stringContaining(`usage: nodekeeper demo ${name} `)]);
});

it.each(['backup', 'restore', 'explain'])('nodekeeper %s --help', (name) => {
  const { status, stdout } = spawnSync(process.execPath, ['cli/bin/nodekeeper.ts', name, '--help'], {
    cwd: repositoryRoot,
    encoding: 'utf8',
  });
  expect(status).toBe(0);
  expect(stdout).toContain(`nodekeeper ${name === 'restore' ? 'backup FILE | check | restore FILE' : name}`);
});
