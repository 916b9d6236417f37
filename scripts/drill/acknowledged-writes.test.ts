import { describe, expect, it } from 'vitest';
import { AcknowledgedWrites } from './acknowledged-writes.ts';

describe('acknowledged writes', () => {
  it('are lost when an older text, or nothing, is stored', () => {
    const writes = new AcknowledgedWrites();
    for (const text of ['0', '1']) writes.sent('a', text)();
    writes.sent('b', '0')();
    const acknowledged = writes.acknowledged();
    expect(writes.count).toBe(3);
    expect(
      writes.lost(
        acknowledged,
        new Map([
          ['a', '1'],
          ['b', '0'],
        ]),
      ),
    ).toEqual([]);
    expect(writes.lost(acknowledged, new Map([['a', '0']]))).toEqual(['a', 'b']);
  });

  it('are lost when a deleted object exists again', () => {
    const writes = new AcknowledgedWrites();
    for (const text of ['0', 'absent']) writes.sent('a', text)();
    expect(writes.lost(writes.acknowledged(), new Map([['a', '0']]))).toEqual(['a']);
    expect(writes.lost(writes.acknowledged(), new Map())).toEqual([]);
  });

  it('are not lost when an unanswered write, or one that was acknowledged later, is stored', () => {
    const writes = new AcknowledgedWrites();
    writes.sent('a', '0')();
    const acknowledged = writes.acknowledged();
    writes.sent('a', '1')();
    writes.sent('a', 'absent');
    for (const stored of ['0', '1', 'absent']) expect(writes.lost(acknowledged, new Map([['a', stored]]))).toEqual([]);
    expect(writes.lost(acknowledged, new Map([['a', 'unsent']]))).toEqual(['a']);
  });
});
