import { describe, expect, it } from 'vitest';
import { compare, lower } from './ceilings.ts';

describe('compare', () => {
  it('reports a file above its ceiling, and a file without one that holds a word', () => {
    const counts = new Map([
      ['a.ts', 3],
      ['b.ts', 1],
      ['c.ts', 0],
    ]);
    expect(compare({ 'a.ts': 2 }, counts)).toEqual({ raised: ['a.ts', 'b.ts'], lowered: [] });
  });

  it('reports a ceiling above the count, and one of a file that no longer exists', () => {
    expect(compare({ 'a.ts': 2, 'b.ts': 1 }, new Map([['a.ts', 1]]))).toEqual({
      raised: [],
      lowered: ['a.ts', 'b.ts'],
    });
  });
});

describe('lower', () => {
  it('writes lower counts back and raises none', () => {
    const counts = new Map([
      ['b.ts', 5],
      ['a.ts', 1],
      ['new.ts', 4],
    ]);
    expect(lower({ 'a.ts': 2, 'b.ts': 3 }, counts, new Map())).toEqual({ 'a.ts': 1, 'b.ts': 3 });
  });

  it('follows a renamed file and drops a clean one', () => {
    const counts = new Map([
      ['shared/new/a.ts', 2],
      ['b.ts', 0],
    ]);
    const renames = new Map([['shared/new/a.ts', 'a.ts']]);
    expect(lower({ 'a.ts': 2, 'b.ts': 1 }, counts, renames)).toEqual({ 'shared/new/a.ts': 2 });
  });
});
