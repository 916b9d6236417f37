import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { type Exception, examine } from '../scripts/reachability/examine.ts';
import { type Layout, layout } from '../scripts/reachability/layout.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PLANTED = fileURLToPath(new URL('./fixtures/reachability', import.meta.url));
const plantedLayout: Layout = {
  product: ['product'],
  entries: ['product/bin/*.ts'],
  tools: ['tools'],
  toolEntries: ['tools/run.ts'],
  forTools: [],
};
const examinePlanted = (exceptions: readonly Exception[] = []) => examine(PLANTED, plantedLayout, exceptions);

describe('the reachability check', () => {
  it('reports what only tests reach, what only tools reach, and what nothing reaches', () => {
    const { findings, symbols, files } = examinePlanted();
    expect(findings.map(({ symbol }) => symbol)).toEqual([
      'product/rules/store.ts#Store.peek',
      'product/rules/store.ts#openStore.peek',
      'product/rules/used.ts#inner',
      'product/rules/used.ts#onlyTested',
      'product/rules/used.ts#byNobody',
      'product/rules/used.ts#onlyForTools',
      'product/rules/used.ts#Counter.reset',
      'tools/measure.ts#alsoMeasured',
    ]);
    // The functions and members that are used are examined as well.
    expect({ symbols, files }).toEqual({ symbols: 16, files: 5 });
  });

  it('names the tests that use it', () => {
    const tested = examinePlanted().findings.find(({ symbol }) => symbol.endsWith('#onlyTested'));
    expect(tested?.namedIn).toEqual(['product/rules/used.test.ts']);
  });

  it('accepts what an exception names, by symbol or by file', () => {
    const { findings, excepted, stale } = examinePlanted([
      { symbol: 'product/rules/used.ts#*', reason: 'planted' },
      { symbol: 'product/rules/store.ts#Store.peek', reason: 'planted' },
    ]);
    expect(findings.map(({ symbol }) => symbol)).toEqual([
      'product/rules/store.ts#openStore.peek',
      'tools/measure.ts#alsoMeasured',
    ]);
    expect(excepted).toBe(6);
    expect(stale).toEqual([]);
  });

  it('reports an exception that no longer applies', () => {
    const reachedByNow = { symbol: 'product/rules/used.ts#used', reason: 'planted' };
    expect(examinePlanted([reachedByNow]).stale).toEqual([reachedByNow]);
  });

  it('refuses an entry that matches no program', () => {
    expect(() => examine(PLANTED, { ...plantedLayout, entries: ['product/bin/other.ts'] }, [])).toThrow(
      'no program matches the entry product/bin/other.ts',
    );
  });

  it('examines every folder that holds TypeScript, tests excepted', () => {
    const folders = readdirSync(ROOT, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !/^\.|^node_modules$|^cdk\.out$|^test$/.test(entry.name))
      .map(({ name }) => name)
      .filter((name) =>
        readdirSync(join(ROOT, name), { recursive: true }).some((file) => String(file).endsWith('.ts')),
      );
    expect([...layout.product, ...layout.tools].sort()).toEqual(folders.sort());
  });
});
