import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CONFIRMATIONS_PER_PASS_MAX as BUDGET,
  type Confirmations,
  FOREIGN_VALID_PASSES,
  keepConfirmations,
  planConfirmations,
} from './instance-confirmation.ts';

type Truth = 'notFound' | 'foreign' | 'failed';
const idsOf = (count: number, prefix = 'i'): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`);

/** Passes over ids that every response by filter lacks: the requests and answers of each pass. */
function passes(count: number, missing: readonly string[], truthOf: (id: string, pass: number) => Truth) {
  let kept: Confirmations = new Map();
  return Array.from({ length: count }, (_, index) => {
    const pass = index + 1;
    const plan = planConfirmations(missing, kept, pass);
    const answers = new Map<string, Truth>();
    for (const id of plan.requested) answers.set(id, truthOf(id, pass));
    for (const id of plan.foreign) answers.set(id, 'foreign');
    for (const id of plan.later) answers.set(id, 'failed');
    kept = keepConfirmations(kept, pass, answers, new Set(plan.requested));
    return { requested: plan.requested, answers };
  });
}

describe('requests by id', () => {
  it('are made for every missing instance while there are few', () => {
    const missing = idsOf(BUDGET);
    for (const { requested } of passes(3, missing, () => 'notFound'))
      expect(requested.toSorted()).toEqual(missing.toSorted());
  });

  it('are made for a new instance before those of the first pass', () => {
    const known = idsOf(BUDGET, 'known');
    const kept: Confirmations = new Map(known.map((id) => [id, { pass: 1, consecutiveNotFound: 0, isForeign: false }]));
    expect(planConfirmations([...known, 'fresh'], kept, 2).requested).toContain('fresh');
  });

  it('are made in three consecutive passes for each id, however many there are', () => {
    const missing = idsOf(3 * BUDGET);
    const all = passes(9, missing, () => 'notFound');
    for (const [turn, first] of [0, 3, 6].entries()) {
      const expected = missing.slice(turn * BUDGET, (turn + 1) * BUDGET);
      for (const { requested } of all.slice(first, first + 3)) expect(requested).toEqual(expected);
    }
  });

  it('are repeated for an instance of another account after FOREIGN_VALID_PASSES', () => {
    const all = passes(FOREIGN_VALID_PASSES + 1, ['i-1'], () => 'foreign');
    expect(all.flatMap(({ requested }, index) => (requested.length > 0 ? [index] : []))).toEqual([
      0,
      FOREIGN_VALID_PASSES,
    ]);
    for (const { answers } of all) expect(answers.get('i-1')).toBe('foreign');
  });

  it('find that an instance of another account no longer exists', () => {
    const all = passes(FOREIGN_VALID_PASSES + 2, ['i-1'], (_, pass) => (pass === 1 ? 'foreign' : 'notFound'));
    expect(all.slice(-3).map(({ answers }) => answers.get('i-1'))).toEqual(['foreign', 'notFound', 'notFound']);
  });

  it('count consecutive answers from zero after a failed request', () => {
    const missing = idsOf(BUDGET + 1);
    const all = passes(3, missing, (id, pass) => (id === 'i-0' && pass === 2 ? 'failed' : 'notFound'));
    // i-0 has no consecutive answers any more, so the waiting instance comes first.
    expect(all[2]?.requested).toContain(`i-${BUDGET}`);
    expect(all[2]?.requested).not.toContain('i-0');
  });

  it('are dropped for an instance that is found again', () => {
    const kept = keepConfirmations(new Map(), 1, [['i-1', 'foreign']], new Set(['i-1']));
    expect(keepConfirmations(kept, 2, [['i-1', 'found']], new Set()).size).toBe(0);
  });

  it('are kept for the latest ten thousand ids', () => {
    let kept: Confirmations = new Map();
    for (let pass = 1; pass <= 501; pass += 1) {
      const requested = idsOf(BUDGET, `i-${pass}`);
      kept = keepConfirmations(
        kept,
        pass,
        requested.map((id) => [id, 'foreign'] as const),
        new Set(requested),
      );
    }
    expect(kept.size).toBe(10_000);
    expect(kept.has('i-1-0')).toBe(false);
    expect(kept.has('i-501-0')).toBe(true);
  });

  it('reach every missing instance in two consecutive passes, and never exceed the bound', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom<Truth>('notFound', 'foreign', 'failed'), { maxLength: 90 }), (truths) => {
        const missing = truths.map((_, index) => `i-${index}`);
        const truthOf = (id: string): Truth => truths[Number(id.slice(2))]!;
        const all = passes(30, missing, truthOf);
        for (const { requested, answers } of all) {
          expect(requested.length).toBeLessThanOrEqual(BUDGET);
          expect(answers.size).toBe(missing.length);
          for (const [id, kind] of answers) if (kind !== 'failed') expect(kind).toBe(truthOf(id));
        }
        for (const id of missing.filter((one) => truthOf(one) === 'notFound')) {
          const confirmed = all.map(({ answers }) => answers.get(id) === 'notFound');
          expect(confirmed.some((isNow, index) => isNow && confirmed[index + 1] === true)).toBe(true);
        }
      }),
    );
  });
});

describe('an answer to another request', () => {
  const known = (more: object = {}) => ({ pass: 3, consecutiveNotFound: 1, isForeign: false, ...more });
  const kept: Confirmations = new Map([
    ['i-1', known()],
    ['i-2', known()],
  ]);
  const keptAfter = (kind: 'found' | 'failed' | 'notFound' | 'foreign') =>
    keepConfirmations(kept, 4, [['i-1', kind]], new Set());

  it('ends the results of an instance that exists, and the count of one when its state is not known', () => {
    expect([...keptAfter('found')]).toEqual([['i-2', known()]]);
    expect([...keptAfter('failed')]).toEqual([
      ['i-1', known({ consecutiveNotFound: 0 })],
      ['i-2', known()],
    ]);
    expect([...keepConfirmations(kept, 4, [['i-3', 'failed']], new Set())]).toEqual([...kept]);
  });

  it('that was concluded from what is kept changes nothing', () => {
    for (const kind of ['notFound', 'foreign'] as const) expect([...keptAfter(kind)]).toEqual([...kept]);
  });

  it('by the id is kept behind all others, and counts in a row', () => {
    const requested = (kind: 'notFound' | 'foreign' | 'failed') => [
      ...keepConfirmations(kept, 4, [['i-1', kind]], new Set(['i-1'])),
    ];
    const i2 = ['i-2', known()];
    expect(requested('notFound')).toEqual([i2, ['i-1', { pass: 4, consecutiveNotFound: 2, isForeign: false }]]);
    expect(requested('foreign')).toEqual([i2, ['i-1', { pass: 4, consecutiveNotFound: 0, isForeign: true }]]);
    expect(requested('failed')).toEqual([i2, ['i-1', { pass: 4, consecutiveNotFound: 0, isForeign: false }]]);
  });
});

it('instances of other accounts that must wait for their request are still those of other accounts', () => {
  const ids = idsOf(BUDGET + 2);
  const kept: Confirmations = new Map(
    ids.map((id, index) => [id, { pass: index, consecutiveNotFound: 0, isForeign: index !== BUDGET }]),
  );
  const plan = planConfirmations(ids, kept, 1_000);
  expect(plan).toEqual({ requested: ids.slice(0, BUDGET), foreign: [ids[BUDGET + 1]], later: [ids[BUDGET]] });
});
