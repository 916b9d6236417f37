import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { turns } from './turns.ts';

describe('turns', () => {
  it('let so many work at once, in order of arrival, also after one that failed', async () => {
    const take = turns(2);
    const begun: number[] = [];
    const ends: (() => void)[] = [];
    const works = [0, 1, 2, 3, 4].map((index) =>
      take('a', async () => {
        begun.push(index);
        await new Promise<void>((resolve) => ends.push(resolve));
        if (index === 1) throw new RangeError('one');
        return index;
      }).catch((error: Error) => error.message),
    );
    await turn();
    expect(begun).toEqual([0, 1]);
    ends[1]!();
    await turn();
    const late = take('a', async () => void begun.push(5));
    expect(begun).toEqual([0, 1, 2]);
    ends[0]!();
    ends[2]!();
    await turn();
    expect(begun).toEqual([0, 1, 2, 3, 4]);
    ends[3]!();
    ends[4]!();
    expect(await Promise.all(works)).toEqual([0, 'one', 2, 3, 4]);
    await late;
    expect(begun).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('pass from one who waits to another, however much each one waits for', async () => {
    const take = turns(1);
    const begun: string[] = [];
    const work = (of: string) =>
      take(of, async () => {
        begun.push(of);
        await turn();
      });
    await Promise.all(['a', 'a', 'a', 'a', 'b', 'c', 'b'].map(work));
    expect(begun).toEqual(['a', 'a', 'b', 'c', 'a', 'b', 'a']);
  });
});
