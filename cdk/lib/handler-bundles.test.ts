import { expect, it } from 'vitest';
import { functionList } from '../../functions/function-list.ts';
import { handlerBundles } from './handler-bundles.ts';

it.each(functionList.map(({ name }) => name))('%s loads no fetch for an import of node:http', (name) => {
  const files = handlerBundles(name).filter(({ path }) => path.endsWith('.mjs'));
  expect(files.length).toBeGreaterThan(0);
  const importing = files.filter(({ text }) => /(?:from|import)\s*["'](?:node:)?https?["']/.test(text));
  expect(importing.map(({ path }) => path)).toEqual([]);
});

it.each(functionList.map(({ name }) => name))('%s has only characters that V8 stores in one byte', (name) => {
  // One other character in a file, and V8 stores the whole file with two bytes per character.
  const wide = handlerBundles(name).filter(({ path, text }) => path.endsWith('.mjs') && /[\u0100-\uffff]/.test(text));
  expect(wide.map(({ path }) => path)).toEqual([]);
});
