import { describe, expect, it } from 'vitest';
import { stormTime } from './storm-time.ts';

describe('time of a storm', () => {
  it('wakes sleepers in order of their time, whatever the order of their calls', async () => {
    const time = stormTime(0);
    const woken: string[] = [];
    const sleep = async (name: string, ms: number) => {
      await time.sleep(ms);
      woken.push(`${name} ${time.nowMs()}`);
    };
    void sleep('c', 30);
    void sleep('a', 10);
    void sleep('b', 20).then(() => sleep('d', 5));
    await time.passUntil(40);
    expect(woken).toEqual(['a 10', 'b 20', 'd 25', 'c 30']);
    expect(time.nowMs()).toBe(40);
  });

  it('ends every sleep at the latest when its signal is aborted', async () => {
    const time = stormTime(0);
    const stop = new AbortController();
    const sleeping = time.sleep(1_000, stop.signal);
    stop.abort();
    await sleeping;
    expect(time.nowMs()).toBe(0);
  });

  it('does not wake sleepers before their time', async () => {
    const time = stormTime(0);
    let awake = false;
    void time.sleep(11).then(() => {
      awake = true;
    });
    await time.passUntil(10);
    expect(awake).toBe(false);
    await time.passUntil(11);
    expect(awake).toBe(true);
  });
});
