import ts from 'typescript';
import { expect, it } from 'vitest';
import { NOTE, withProbes } from './probes.ts';

it('probes note the functions that are called, and the module, without changing what is computed', () => {
  const text =
    'const twice = (x) => ({ value: x + x });\nfunction unused() { return 1; }\nout(((f) => f(2))(twice).value);';
  const noted: number[] = [];
  let result: unknown;
  const context = { [NOTE]: (_file: string, position: number) => noted.push(position) };
  const { outputText } = ts.transpileModule(withProbes('a.ts', text), {
    compilerOptions: { target: ts.ScriptTarget.ES2024, module: ts.ModuleKind.ESNext },
  });
  new Function('globalThis', 'out', outputText)(context, (value: unknown) => {
    result = value;
  });
  expect(result).toBe(4);
  expect(noted).toEqual([text.indexOf('(f)'), text.indexOf('(x)'), -1]);
});
