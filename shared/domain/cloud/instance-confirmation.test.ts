import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CONFIRMATIONS_PER_PASS_MAX as BUDGET,
  type Confirmations,
  FOREIGN_STANDS_PASSES,
  keepConfirmations,
  planConfirmations,
} from './instance-confirmation.ts';

type Truth = 'notFound' | 'foreign' | 'failed';
const idsOf = (count: number, prefix = 'i'): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`);

/** Passes over ids that the filtered answer always lacks; what each pass asked and answered. */
function passes(count: number, missing: readonly string[], truthOf: (id: string, pass: number) => Truth) {
  let kept: Confirmations = new Map();
  return Array.from({ length: count }, (_, index) => {
    const pass = index + 1;
    const plan = planConfirmations(missing, kept, pass);
    const answers = new Map<string, Truth>();
    for (const id of plan.ask) answers.set(id, truthOf(id, pass));
    for (const id of plan.foreign) answers.set(id, 'foreign');
    for (const id of plan.later) answers.set(id, 'failed');
    kept = keepConfirmations(kept, pass, answers, new Set(plan.ask));
    return { ask: plan.ask, answers };
  });
}

describe('questions by id', () => {
  it('are asked about every missing instance while there are few', () => {
    const missing = idsOf(BUDGET);
    for (const { ask } of passes(3, missing, () => 'notFound')) expect(ask.toSorted()).toEqual(missing.toSorted());
  });

  it('are asked about an instance never asked about before those of the first pass', () => {
    const known = idsOf(BUDGET, 'known');
    const kept: Confirmations = new Map(known.map((id) => [id, { pass: 1, notFoundInRow: 0, isForeign: false }]));
    expect(planConfirmations([...known, 'fresh'], kept, 2).ask).toContain('fresh');
  });

  it('stand side by side for each id, however many there are', () => {
    const missing = idsOf(3 * BUDGET);
    const all = passes(9, missing, () => 'notFound');
    for (const [turn, first] of [0, 3, 6].entries()) {
      const expected = missing.slice(turn * BUDGET, (turn + 1) * BUDGET);
      for (const { ask } of all.slice(first, first + 3)) expect(ask).toEqual(expected);
    }
  });

  it('are asked again about an instance of another account only now and then', () => {
    const all = passes(FOREIGN_STANDS_PASSES + 1, ['i-1'], () => 'foreign');
    expect(all.flatMap(({ ask }, index) => (ask.length > 0 ? [index] : []))).toEqual([0, FOREIGN_STANDS_PASSES]);
    for (const { answers } of all) expect(answers.get('i-1')).toBe('foreign');
  });

  it('hear when the instance of another account is no more', () => {
    const all = passes(FOREIGN_STANDS_PASSES + 2, ['i-1'], (_, pass) => (pass === 1 ? 'foreign' : 'notFound'));
    expect(all.slice(-3).map(({ answers }) => answers.get('i-1'))).toEqual(['foreign', 'notFound', 'notFound']);
  });

  it('begin their row again after a question without answer', () => {
    const missing = idsOf(BUDGET + 1);
    const all = passes(3, missing, (id, pass) => (id === 'i-0' && pass === 2 ? 'failed' : 'notFound'));
    // i-0 has no answer any more that a next could stand beside; the one that waited is before it.
    expect(all[2]?.ask).toContain(`i-${BUDGET}`);
    expect(all[2]?.ask).not.toContain('i-0');
  });

  it('are forgotten with the instance that is there again', () => {
    const kept = keepConfirmations(new Map(), 1, [['i-1', 'foreign']], new Set(['i-1']));
    expect(keepConfirmations(kept, 2, [['i-1', 'found']], new Set()).size).toBe(0);
  });

  it('are kept of ten thousand ids, the latest', () => {
    let kept: Confirmations = new Map();
    for (let pass = 1; pass <= 501; pass += 1) {
      const asked = idsOf(BUDGET, `i-${pass}`);
      kept = keepConfirmations(
        kept,
        pass,
        asked.map((id) => [id, 'foreign'] as const),
        new Set(asked),
      );
    }
    expect(kept.size).toBe(10_000);
    expect(kept.has('i-1-0')).toBe(false);
    expect(kept.has('i-501-0')).toBe(true);
  });

  it('reach everybody twice in a row, whoever else is missing, and never exceed the bound', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom<Truth>('notFound', 'foreign', 'failed'), { maxLength: 90 }), (truths) => {
        const missing = truths.map((_, index) => `i-${index}`);
        const truthOf = (id: string): Truth => truths[Number(id.slice(2))]!;
        const all = passes(30, missing, truthOf);
        for (const { ask, answers } of all) {
          expect(ask.length).toBeLessThanOrEqual(BUDGET);
          expect(answers.size).toBe(missing.length);
          for (const [id, kind] of answers) if (kind !== 'failed') expect(kind).toBe(truthOf(id));
        }
        for (const id of missing.filter((one) => truthOf(one) === 'notFound')) {
          const heard = all.map(({ answers }) => answers.get(id) === 'notFound');
          expect(heard.some((now, index) => now && heard[index + 1] === true)).toBe(true);
        }
      }),
    );
  });
});
