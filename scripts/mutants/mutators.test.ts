import { describe, expect, it } from 'vitest';
import { apply, mutantsOf } from './mutators.ts';

const changesIn = (text: string) => mutantsOf('a.ts', text).map(({ change }) => change);
const textsOf = (text: string) => mutantsOf('a.ts', text).map((mutant) => apply(text, mutant));

describe('mutators', () => {
  it.each([
    ['a < b;', ['a <= b', 'a >= b']],
    ['a === b;', ['a !== b']],
    ['a && b;', ['a || b', 'a', 'b']],
    ['a ?? b;', ['a']],
    ['c ? x : y;', ['true ? x : y', 'false ? x : y']],
    ['!a;', ['a']],
    ['a - b;', ['a + b']],
    ['x = 1;', ['x = 2']],
    ["x = 'abc';", ["x = ''"]],
    ['x = [y];', ['x = []']],
    ['x = { ...y };', ['x = { ...{} }']],
    ['Math.min(a, b);', ['Math.max(a, b)']],
    ['x.some(f);', ['x.every(f)']],
    ['x.filter(f).map(g);', ['x.map(g)']],
  ])('change %s', (text, expected) => {
    const changed = expected.map((line) => `${line};`);
    expect(textsOf(text).filter((mutant) => mutant !== ';')).toEqual(changed);
  });

  it('remove statements, early ends and awaits', () => {
    expect(textsOf('async function f() { await g(); }')).toEqual([
      'async function f() { ; }',
      'async function f() { (g()); }',
    ]);
    expect(changesIn('function f() { if (a) return; throw b; }')).toEqual([
      'a → true',
      'a → false',
      'return; → ;',
      'throw b; → ;',
    ]);
    expect(changesIn('for (const x of y) continue;')).toEqual(['continue; → ;']);
  });

  it.each([
    "import x from 'y';",
    "type X = 'y' | 1;",
    "interface X { readonly kind: 'y' }",
    "const x = { 'a-b': y };",
    "function f() { return x['key']; }",
    "const x = new StoreFault('read failed');",
    "log.warn('read failed');",
    "await log.warn('read failed');",
    'const PAGE = 500;',
    "const x = 'a sentence for people';",
  ])('leave %s as it is', (text) => {
    expect(changesIn(text)).toEqual([]);
  });

  it('do not subtract texts', () => {
    expect(changesIn("const x = `a` + y + 'b';")).toEqual(["'b' → ''"]);
  });

  it('name the function around a change, and keep the comments in it', () => {
    const text = 'const f = () => {\n  const g = (a) => // why\n    a && b;\n};';
    const [mutant] = mutantsOf('a.ts', text);
    expect(mutant).toMatchObject({ within: 'f.g', line: 3, change: 'a && b → a || b' });
    expect(mutant === undefined ? '' : apply(text, mutant)).toBe(text.replace('&&', '||'));
  });
});
