import { describe, expect, it } from 'vitest';
import { type Backoffs, backoffOf, backoffsOfRow, backoffsRow, isWaiting, withFailure } from './backoff.rule.ts';

const EMPTY: Backoffs = { generation: 3, nodes: {} };

describe('the wait of a node between deletions of failed pods', () => {
  it('begins with a second, doubles, and is at most 15 minutes', () => {
    let backoffs = EMPTY;
    let nowMs = 1_000_000;
    const delays: number[] = [];
    for (let failure = 0; failure < 12; failure += 1) {
      backoffs = withFailure(backoffs, 'n1', nowMs);
      const { atMs, delayMs } = backoffOf(backoffs, 'n1');
      expect(atMs).toBe(nowMs);
      delays.push(delayMs / 1_000);
      nowMs += 1;
    }
    expect(delays).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
    expect(backoffs.generation).toBe(3);
  });

  it('ends with its last millisecond', () => {
    expect(isWaiting({ atMs: 1_000, delayMs: 500 }, 1_499)).toBe(true);
    expect(isWaiting({ atMs: 1_000, delayMs: 500 }, 1_500)).toBe(false);
  });

  it.each([
    [1_800_000, 16_000],
    [1_800_001, 1_000],
  ])('continues after %i ms without a failure with %i ms', (laterMs, delayMs) => {
    const backoffs = { ...EMPTY, nodes: { n1: { atMs: 7, delayMs: 8_000 } } };
    expect(backoffOf(withFailure(backoffs, 'n1', 7 + laterMs), 'n1').delayMs).toBe(delayMs);
  });

  it('is forgotten half an hour after the failure, when another node fails', () => {
    const nodes = { old: { atMs: 0, delayMs: 1 }, young: { atMs: 1, delayMs: 1 } };
    const after = withFailure({ ...EMPTY, nodes }, 'n1', 1_800_001);
    expect(Object.keys(after.nodes)).toEqual(['young', 'n1']);
  });

  it('is kept for the 500 nodes that failed last', () => {
    const nodes = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`n${at}`, { atMs: at, delayMs: 1 }]));
    const after = withFailure({ ...EMPTY, nodes }, 'new', 600);
    expect(Object.keys(after.nodes)).toHaveLength(500);
    expect(Object.keys(after.nodes)).toContain('new');
    expect(after.nodes['n0']).toBeUndefined();
    expect(after.nodes['n1']).toBeDefined();
    expect(Object.keys(withFailure({ ...EMPTY, nodes }, 'n499', 600).nodes)).toHaveLength(500);
  });

  it('is none for a node that never failed, whatever its name', () => {
    for (const name of ['n1', 'constructor', '__proto__']) {
      expect(backoffOf(EMPTY, name)).toEqual({ atMs: 0, delayMs: 0 });
    }
  });

  it('is read from the row of the claim for the same generation', () => {
    const backoffs = withFailure(withFailure(EMPTY, 'n1', 5), 'n2', 6);
    const row = backoffsRow(backoffs);
    expect(row).toEqual({ b: [3, ['n1', 5, 1_000], ['n2', 6, 1_000]] });
    expect(backoffsOfRow(row, 3)).toEqual(backoffs);
    expect(backoffsOfRow(row, 4)).toEqual({ generation: 4, nodes: {} });
  });

  it.each([{}, { b: 'x' }, { b: [] }, { b: [3, 'x', [7, 1, 1], null] }])('is none in the row %j', (row) => {
    expect(backoffsOfRow(row, 3)).toEqual(EMPTY);
  });
});
