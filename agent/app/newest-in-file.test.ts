import { describe, expect, it } from 'vitest';
import { NewestInFile } from './newest-in-file.ts';

/** A file. The test ends its writes. */
function heldFile() {
  const written: string[] = [];
  const ends: { readonly done: () => void; readonly fail: (cause: Error) => void }[] = [];
  const warnings: unknown[] = [];
  const kept = new NewestInFile<string>({
    file: {
      write: (value) =>
        new Promise((done, fail) => {
          written.push(value);
          ends.push({ done, fail });
        }),
    },
    log: { warn: (message, fields) => void warnings.push([message, fields]) },
    failure: 'cannot write',
  });
  const end = async (failure?: string): Promise<void> => {
    const { done, fail } = ends.shift()!;
    if (failure === undefined) done();
    else fail(new Error(failure));
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  };
  return { kept, written, warnings, end };
}

describe('the newest value in a file', () => {
  it('is written once, also when it is kept again', async () => {
    const { kept, written, end } = heldFile();
    const first = kept.keep('a');
    await end();
    await first;
    await kept.keep('a');
    expect(written).toEqual(['a']);
  });

  it('is written alone after those that came during a write', async () => {
    const { kept, written, end } = heldFile();
    const all = Promise.all([kept.keep('a'), kept.keep('b'), kept.keep('c')]);
    expect(written).toEqual(['a']);
    await end();
    expect(written).toEqual(['a', 'c']);
    await end();
    await all;
    const later = kept.keep('d');
    expect(written).toEqual(['a', 'c', 'd']);
    await end();
    await later;
  });

  it('is logged once while it cannot be written, and again after a write that succeeded', async () => {
    const { kept, written, warnings, end } = heldFile();
    for (const [value, failure] of [['a', 'full'], ['b', 'full'], ['c'], ['d', 'gone']] as const) {
      const done = kept.keep(value);
      await end(failure);
      await done;
    }
    expect(written).toEqual(['a', 'b', 'c', 'd']);
    expect(warnings).toEqual([
      ['cannot write', { why: expect.stringContaining('full') }],
      ['cannot write', { why: expect.stringContaining('gone') }],
    ]);
  });
});
