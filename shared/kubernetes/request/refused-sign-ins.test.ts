import { describe, expect, it } from 'vitest';
import { refusedSignIns } from './refused-sign-ins.ts';

describe('refused sign-ins', () => {
  it('are logged once per minute and reason, with the number of repetitions', () => {
    const logged: unknown[] = [];
    const nothing = () => {};
    const note = refusedSignIns({
      debug: nothing,
      info: nothing,
      error: nothing,
      warn: (_, fields) => logged.push([fields?.['reason'], fields?.['repeated']]),
    });
    for (const nowMs of [0, 1, 59_999]) note('token has expired', '192.0.2.1', nowMs);
    note('unknown key', '192.0.2.1', 30_000);
    note('token has expired', '192.0.2.1', 60_000);
    expect(logged).toEqual([
      ['token has expired', 0],
      ['unknown key', 0],
      ['token has expired', 2],
    ]);
  });
});
