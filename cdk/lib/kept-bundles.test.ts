import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { keepBundles, keptBundles } from './kept-bundles.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodekeeper-bundles-'));
  vi.stubEnv('NODEKEEPER_BUNDLES', folder);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const bundle = (text: string) => ({ path: '/handlers/api/index.mjs', contents: new TextEncoder().encode(text), text });

it('keeps the bytes of a bundle under its name', () => {
  expect(keptBundles('api')).toBeUndefined();
  keepBundles('api', [bundle('one'), bundle('two')]);
  keepBundles('watch', [bundle('three')]);
  expect(keptBundles('api')?.map(({ path, text }) => [path, text])).toEqual([
    ['/handlers/api/index.mjs', 'one'],
    ['/handlers/api/index.mjs', 'two'],
  ]);
  expect(keptBundles('watch')?.map(({ text }) => text)).toEqual(['three']);
  expect(keptBundles('heartbeat')).toBeUndefined();
});

it('has no file that another process would read half-written', () => {
  keepBundles('api', [bundle('one')]);
  keepBundles('api', [bundle('one')]);
  const [key = ''] = readdirSync(folder);
  expect(readdirSync(join(folder, key))).toHaveLength(1);
});

it('removes the bundles of older sources', () => {
  for (const name of ['a', 'b', 'c', 'd', 'e']) writeFileSync(join(folder, name), '');
  keepBundles('api', [bundle('one')]);
  expect(readdirSync(folder)).toHaveLength(4);
  expect(keptBundles('api')).toHaveLength(1);
});

it('keeps nothing where no directory is named, as in a deployment', () => {
  vi.stubEnv('NODEKEEPER_BUNDLES', undefined);
  keepBundles('api', [bundle('one')]);
  expect(keptBundles('api')).toBeUndefined();
  expect(readdirSync(folder)).toEqual([]);
});
