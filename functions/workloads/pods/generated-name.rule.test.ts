import { describe, expect, it } from 'vitest';
import { NAME_ALPHABET, podNameFor, prefixOf } from './generated-name.rule.ts';

describe('the name of a pod', () => {
  const name = (owner: string, seed: object = {}) => podNameFor(owner, { uid: 'u', fence: 1, position: 0, ...seed });

  it('is that of its owner with a suffix that follows from its seed', () => {
    expect(name('web')).toBe(name('web'));
    expect(name('web')).toMatch(new RegExp(`^web-[${NAME_ALPHABET}]{5}$`));
    expect(prefixOf(name('web'))).toBe('web-');
    const others = [name('web', { uid: 'v' }), name('web', { fence: 2 }), name('web', { position: 1 })];
    expect(new Set([name('web'), ...others]).size).toBe(4);
  });

  it('differs for each of a thousand positions', () => {
    expect(new Set(Array.from({ length: 1_000 }, (_, position) => name('web', { position }))).size).toBe(1_000);
  });

  it.each([
    [57, 58],
    [58, 58],
    [80, 58],
  ])('of an owner with %i characters has a prefix of %i', (characters, prefix) => {
    expect(prefixOf(name('x'.repeat(characters)))).toHaveLength(prefix);
    expect(name('x'.repeat(characters))).toHaveLength(prefix + 5);
  });
});
