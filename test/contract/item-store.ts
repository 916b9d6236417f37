/**
 * What every ItemStore must do: each clause of the port, run against memory, the embedded engine and DynamoDB Local.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type AttributeValue,
  type Condition,
  compareKeys,
  type Item,
  type ItemKey,
  type ItemPosition,
  type ItemStore,
  StoreFault,
  type TransactWrite,
} from '../../shared/store/item-store.ts';

export interface StoreUnderTest {
  readonly store: ItemStore;
  close(): Promise<void>;
}

export interface ContractOptions {
  readonly open: () => Promise<StoreUnderTest>;
  /** Reason to skip the suite, decided before it is defined. */
  readonly skip?: string;
  /** A scan ends early when the item it is to go on after was deleted: not so in DynamoDB. */
  readonly scanNeedsStart?: boolean;
}

let partitions = 0;

export function defineItemStoreContract(name: string, options: ContractOptions): void {
  const title = `item store: ${name}${options.skip === undefined ? '' : ` (skipped: ${options.skip})`}`;
  describe.skipIf(options.skip !== undefined)(title, () => {
    let under: StoreUnderTest;
    let store: ItemStore;
    let pk: string;
    beforeAll(async () => {
      under = await options.open();
      store = under.store;
    });
    afterAll(async () => {
      await under?.close();
    });
    beforeEach(() => {
      partitions += 1;
      pk = `case-${partitions}`;
    });

    const at = (sk: string, table: ItemKey['table'] = 'objects'): ItemKey => ({ table, pk, sk });
    const read = (sk: string): Promise<Item | undefined> => store.get(at(sk), { consistent: true });
    const put = (sk: string, item: Item = {}): Promise<unknown> => store.write({ kind: 'put', key: at(sk), item });
    const sortKeys = (items: readonly Item[]): unknown[] => items.map((item) => item['sk']);
    const isFault = async (attempt: Promise<unknown>, code: StoreFault['code']): Promise<void> => {
      const fault = await attempt.then(
        () => undefined,
        (error: unknown) => error,
      );
      expect(fault).toBeInstanceOf(StoreFault);
      expect((fault as StoreFault).code).toBe(code);
    };

    describe('items', () => {
      it('answers undefined for an item that is not there', async () => {
        expect(await read('nobody')).toBeUndefined();
        expect(await store.get(at('nobody'), { consistent: false })).toBeUndefined();
      });

      it('returns every kind of value, and the keys', async () => {
        const item: Item = {
          empty: '',
          text: 'Grüße, 节点 🚀',
          yes: true,
          no: false,
          zero: 0,
          negative: -17.25,
          small: 1e-7,
          largest: Number.MAX_SAFE_INTEGER,
          list: [1, 'two', [true], {}],
          map: { inner: { deep: '' }, none: [] },
        };
        await put('a', item);
        expect(await read('a')).toEqual({ ...item, pk, sk: 'a' });
      });

      it('keeps tables and partitions apart', async () => {
        await store.write({ kind: 'put', key: at('a', 'health'), item: { in: 'health' } });
        await store.write({ kind: 'put', key: at('a', 'control'), item: { in: 'control' } });
        expect(await read('a')).toBeUndefined();
        expect((await store.get(at('a', 'health'), { consistent: true }))?.['in']).toBe('health');
        expect(await store.get({ ...at('a', 'control'), pk: `${pk}-other` }, { consistent: true })).toBeUndefined();
      });

      it('replaces the whole item on put', async () => {
        await put('a', { one: 1, two: 2 });
        await put('a', { three: 3 });
        expect(await read('a')).toEqual({ pk, sk: 'a', three: 3 });
      });

      it('does not let a later change of the argument, or of an answer, reach the table', async () => {
        const item: Item = { list: ['kept'] };
        await put('a', item);
        (item['list'] as string[]).push('added');
        const answer = await read('a');
        try {
          (answer!['list'] as string[]).push('added');
        } catch {
          // A frozen answer is just as good.
        }
        expect((await read('a'))?.['list']).toEqual(['kept']);
      });

      it('deletes, also what is not there', async () => {
        await put('a');
        expect((await store.write({ kind: 'delete', key: at('a') })).kind).toBe('written');
        expect((await store.write({ kind: 'delete', key: at('a') })).kind).toBe('written');
        expect(await read('a')).toBeUndefined();
      });

      it('rejects an empty key and a number that is none', async () => {
        await isFault(put(''), 'rejected');
        await isFault(put('a', { n: Number.NaN }), 'rejected');
        await isFault(put('a', { n: Number.POSITIVE_INFINITY }), 'rejected');
      });
    });

    describe('sizes', () => {
      const KILOBYTE = 1_024;
      const text = (bytes: number): string => 'x'.repeat(bytes);
      /** The service names none of its sizes by a code of its own. */
      const isTooMuch = async (attempt: Promise<unknown>): Promise<void> => {
        const fault = await attempt.then(
          () => undefined,
          (error: unknown) => error,
        );
        expect(fault).toBeInstanceOf(StoreFault);
        expect(['too-large', 'rejected']).toContain((fault as StoreFault).code);
        expect((fault as StoreFault).retryable).toBe(false);
      };

      it('accepts an item just below 400 KB and none above, by put, update and transaction', async () => {
        await put('a', { text: text(400 * KILOBYTE - 100) });
        await isTooMuch(put('b', { text: text(400 * KILOBYTE) }));
        await isTooMuch(store.write({ kind: 'update', key: at('a'), set: { more: text(200) } }));
        await isTooMuch(store.transact([{ kind: 'put', key: at('b'), item: { text: text(400 * KILOBYTE) } }]));
        expect(await read('b')).toBeUndefined();
        expect(await read('a')).toEqual({ pk, sk: 'a', text: text(400 * KILOBYTE - 100) });
      });

      it('takes 4 MB in one transaction and not more, and then writes none of it', async () => {
        const writes = Array.from(
          { length: 11 },
          (_, index): TransactWrite => ({ kind: 'put', key: at(`k${index}`), item: { text: text(390 * KILOBYTE) } }),
        );
        await isTooMuch(store.transact(writes));
        expect(await read('k0')).toBeUndefined();
        expect(await store.transact(writes.slice(0, 10))).toEqual({ kind: 'written' });
      });

      it('accepts keys of 2,048 and 1,024 bytes and none longer', async () => {
        const long = { table: 'objects', pk: pk.padEnd(2 * KILOBYTE, 'p'), sk: text(KILOBYTE) } as const;
        await store.write({ kind: 'put', key: long, item: {} });
        expect(await store.get(long, { consistent: true })).toBeDefined();
        await isTooMuch(store.write({ kind: 'put', key: { ...long, pk: `${long.pk}p` }, item: {} }));
        await isTooMuch(store.write({ kind: 'put', key: { ...long, sk: `${long.sk}x` }, item: {} }));
        // A character of two bytes counts as two.
        await isTooMuch(store.write({ kind: 'put', key: { ...long, sk: `ä${text(KILOBYTE - 1)}` }, item: {} }));
        await isTooMuch(store.get({ ...long, sk: `${long.sk}x` }, { consistent: true }));
      });

      it('rejects numbers that are too large or too small to be stored', async () => {
        await put('a', { large: 1e125, negative: -1e125, small: 1e-130 });
        await isFault(put('a', { n: 1e126 }), 'rejected');
        await isFault(put('a', { n: -1e300 }), 'rejected');
        await isFault(put('a', { n: 1e-131 }), 'rejected');
      });
    });

    describe('getMany', () => {
      it('answers in the order of the keys, absent and repeated ones included, past one batch', async () => {
        const names = Array.from({ length: 230 }, (_, index) => `k${index}`);
        await Promise.all(names.map((sk, index) => put(sk, { index })));
        const keys = [...names, 'absent', 'k3'].reverse().map((sk) => at(sk));
        const items = await store.getMany(keys, { consistent: true });
        expect(items.map((item) => item?.['index'])).toEqual([
          3,
          undefined,
          ...names.map((_, index) => index).reverse(),
        ]);
      });

      it('reads several tables at once, and nothing for no keys', async () => {
        await put('a', { in: 'objects' });
        await store.write({ kind: 'put', key: at('a', 'health'), item: { in: 'health' } });
        const items = await store.getMany([at('a', 'health'), at('a')], { consistent: false });
        expect(items.map((item) => item?.['in'])).toEqual(['health', 'objects']);
        expect(await store.getMany([], { consistent: true })).toEqual([]);
      });
    });

    describe('updates', () => {
      const update = (change: object, options_?: { returnItem?: boolean; returnPrevious?: boolean }) =>
        store.write({ kind: 'update', key: at('a'), ...change }, options_);

      it('makes the item when there is none', async () => {
        await update({ set: { one: 1 }, add: { count: 5 }, setIfAbsent: { born: 'now' } });
        expect(await read('a')).toEqual({ pk, sk: 'a', one: 1, count: 5, born: 'now' });
      });

      it('mixes set, setIfAbsent, add and remove, and leaves the rest', async () => {
        await put('a', { kept: 'k', changed: 1, born: 'before', count: 2, gone: 'x' });
        await update({
          set: { changed: { now: ['a', 'map'] } },
          setIfAbsent: { born: 'after', fresh: '' },
          add: { count: -3, total: 1.5 },
          remove: ['gone', 'never'],
        });
        expect(await read('a')).toEqual({
          pk,
          sk: 'a',
          kept: 'k',
          changed: { now: ['a', 'map'] },
          born: 'before',
          fresh: '',
          count: -1,
          total: 1.5,
        });
      });

      it('accepts names that are reserved words or look like expressions', async () => {
        const item: Item = { name: 'n', size: 1, status: 's', 'a.b': 1, 'c[0]': 2, '#x': 3, ':y': 4 };
        await update({ set: item, when: { kind: 'lacks', attribute: 'a.b' } });
        expect(await read('a')).toEqual({ pk, sk: 'a', ...item });
      });

      it('counts exactly up to 2^53', async () => {
        await put('a', { n: Number.MAX_SAFE_INTEGER - 1 });
        await update({ add: { n: 1 } });
        expect((await read('a'))?.['n']).toBe(Number.MAX_SAFE_INTEGER);
      });

      it('answers the item after the write, or the one before, when asked', async () => {
        expect(await update({ set: { n: 1 } }, { returnPrevious: true })).toEqual({ kind: 'written' });
        expect(await update({ add: { n: 1 } }, { returnItem: true })).toEqual({
          kind: 'written',
          item: { pk, sk: 'a', n: 2 },
        });
        expect(await update({ add: { n: 1 } }, { returnPrevious: true })).toEqual({
          kind: 'written',
          previous: { pk, sk: 'a', n: 2 },
        });
        expect(await update({ add: { n: 1 } })).toEqual({ kind: 'written' });
        expect(await store.write({ kind: 'put', key: at('a'), item: { n: 9 } }, { returnPrevious: true })).toEqual({
          kind: 'written',
          previous: { pk, sk: 'a', n: 4 },
        });
        expect(await store.write({ kind: 'delete', key: at('a') }, { returnPrevious: true })).toEqual({
          kind: 'written',
          previous: { pk, sk: 'a', n: 9 },
        });
      });

      it('rejects adding to what is no number', async () => {
        await put('a', { text: '1' });
        await isFault(update({ add: { text: 1 } }), 'rejected');
      });
    });

    describe('conditions', () => {
      const item: Item = { n: 5, s: 'm', yes: true, empty: '', map: { a: 1 } };
      const holds = async (when: Condition): Promise<boolean> => {
        const outcome = await store.write({ kind: 'update', key: at('a'), set: { probe: 1 }, when });
        return outcome.kind === 'written';
      };
      const compare = (
        attribute: string,
        op: Extract<Condition, { kind: 'compare' }>['op'],
        value: string | number | boolean | Uint8Array,
      ): Condition => ({ kind: 'compare', attribute, op, value });
      beforeEach(async () => {
        await put('a', item);
      });

      it.each<[string, Condition, boolean]>([
        ['=', compare('bytes', '=', Uint8Array.of(1, 0, 255)), true],
        ['= others', compare('bytes', '=', Uint8Array.of(1, 0, 254)), false],
        ['= longer ones', compare('bytes', '=', Uint8Array.of(1, 0, 255, 0)), false],
        ['= where they are absent', compare('z', '=', Uint8Array.of(1)), false],
        ['<> others', compare('bytes', '<>', Uint8Array.of(1)), true],
        ['<>', compare('bytes', '<>', Uint8Array.of(1, 0, 255)), false],
      ])('compares bytes in a transaction: %s', async (_, when, expected) => {
        await store.write({ kind: 'put', key: at('a'), item: { bytes: Uint8Array.of(1, 0, 255) } });
        const outcome = await store.transact([
          { kind: 'update', key: at('a'), set: { probe: 1 }, when },
          { kind: 'put', key: at('b'), item: { n: 1 } },
        ]);
        expect(outcome.kind === 'written').toBe(expected);
      });

      it.each<[string, Condition, boolean]>([
        ['itemExists', { kind: 'itemExists' }, true],
        ['itemAbsent', { kind: 'itemAbsent' }, false],
        ['has', { kind: 'has', attribute: 'n' }, true],
        ['has an empty string', { kind: 'has', attribute: 'empty' }, true],
        ['has what is absent', { kind: 'has', attribute: 'z' }, false],
        ['lacks', { kind: 'lacks', attribute: 'n' }, false],
        ['lacks what is absent', { kind: 'lacks', attribute: 'z' }, true],
        ['number =', compare('n', '=', 5), true],
        ['number = other', compare('n', '=', 6), false],
        ['number <>', compare('n', '<>', 5), false],
        ['number < larger', compare('n', '<', 6), true],
        ['number < itself', compare('n', '<', 5), false],
        ['number <= itself', compare('n', '<=', 5), true],
        ['number > smaller', compare('n', '>', 4.5), true],
        ['number > longer', compare('n', '>', 10), false],
        ['number >= itself', compare('n', '>=', 5), true],
        ['text <', compare('s', '<', 'n'), true],
        ['text > empty', compare('s', '>', ''), true],
        ['text >= longer', compare('s', '>=', 'ma'), false],
        ['empty =', compare('empty', '=', ''), true],
        ['boolean =', compare('yes', '=', true), true],
        ['boolean <>', compare('yes', '<>', false), true],
        ['number = text of it', compare('n', '=', '5'), false],
        ['number < text', compare('n', '<', '6'), false],
        ['number >= text', compare('n', '>=', '5'), false],
        ['text > number', compare('s', '>', 0), false],
        ['number <> text of it', compare('n', '<>', '5'), true],
        ['boolean = text', compare('yes', '=', 'true'), false],
        ['map = text', compare('map', '=', 'a'), false],
        ['absent =', compare('z', '=', 0), false],
        ['absent <', compare('z', '<', 1), false],
        ['absent >=', compare('z', '>=', 0), false],
        ['absent <>', compare('z', '<>', 0), true],
        ['all', { kind: 'all', of: [compare('n', '=', 5), compare('s', '=', 'm')] }, true],
        ['all but one', { kind: 'all', of: [compare('n', '=', 5), compare('s', '=', 'x')] }, false],
        ['any', { kind: 'any', of: [compare('n', '=', 9), compare('s', '=', 'm')] }, true],
        ['any of none', { kind: 'any', of: [compare('n', '=', 9), compare('s', '=', 'x')] }, false],
        [
          'all within any',
          {
            kind: 'any',
            of: [
              { kind: 'lacks', attribute: 'n' },
              { kind: 'all', of: [{ kind: 'has', attribute: 'n' }, compare('n', '<', 6)] },
            ],
          },
          true,
        ],
        [
          'any within all',
          {
            kind: 'all',
            of: [{ kind: 'any', of: [compare('n', '<', 1), compare('n', '>', 9)] }, { kind: 'itemExists' }],
          },
          false,
        ],
        ['one alone in all', { kind: 'all', of: [compare('n', '=', 5)] }, true],
      ])('%s', async (_, when, expected) => {
        expect(await holds(when)).toBe(expected);
      });

      it.each<[string, Condition, boolean]>([
        ['itemExists', { kind: 'itemExists' }, false],
        ['itemAbsent', { kind: 'itemAbsent' }, true],
        ['has', { kind: 'has', attribute: 'n' }, false],
        ['lacks', { kind: 'lacks', attribute: 'n' }, true],
        ['=', compare('n', '=', 0), false],
        ['<', compare('n', '<', 1), false],
        ['<>', compare('n', '<>', 0), true],
      ])('of an absent item: %s', async (_, when, expected) => {
        const outcome = await store.write({ kind: 'put', key: at('none'), item: {}, when });
        expect(outcome).toEqual(expected ? { kind: 'written' } : { kind: 'refused' });
      });

      it('orders text by UTF-8 bytes', async () => {
        await put('a', { s: '\u{1F680}' });
        expect(await holds(compare('s', '>', '\uFF5E'))).toBe(true);
      });

      it('has no order for booleans', async () => {
        await isFault(holds(compare('yes', '<', true)), 'rejected');
      });

      it('refuses a write whole and answers the item that refused it', async () => {
        const when = compare('n', '=', 6);
        const current = { ...item, pk, sk: 'a' };
        expect(await store.write({ kind: 'put', key: at('a'), item: {}, when })).toEqual({ kind: 'refused', current });
        expect(await store.write({ kind: 'delete', key: at('a'), when })).toEqual({ kind: 'refused', current });
        expect(await store.write({ kind: 'update', key: at('a'), set: { n: 0 }, when }, { returnItem: true })).toEqual({
          kind: 'refused',
          current,
        });
        expect(await read('a')).toEqual(current);
      });

      it('lets exactly one of many concurrent writes on one version win', async () => {
        await put('a', { rv: 1 });
        const outcomes = await Promise.all(
          Array.from({ length: 20 }, (_, writer) =>
            store.write({
              kind: 'update',
              key: at('a'),
              set: { rv: 2, writer },
              when: compare('rv', '=', 1),
            }),
          ),
        );
        const winners = outcomes.flatMap((outcome, writer) => (outcome.kind === 'written' ? [writer] : []));
        expect(winners).toHaveLength(1);
        expect((await read('a'))?.['writer']).toBe(winners[0]);
      });

      it('loses no concurrent addition', async () => {
        await put('a', { n: 0 });
        const attempts = Array.from({ length: 25 }, () => store.write({ kind: 'update', key: at('a'), add: { n: 1 } }));
        await Promise.all(attempts);
        expect((await read('a'))?.['n']).toBe(25);
      });
    });

    describe('transactions', () => {
      it('does all four kinds of work together', async () => {
        await put('deleted');
        await put('updated', { n: 1 });
        await put('checked', { n: 1 });
        const writes: TransactWrite[] = [
          { kind: 'put', key: at('new', 'control'), item: { n: 1 }, when: { kind: 'itemAbsent' } },
          { kind: 'update', key: at('updated'), add: { n: 1 }, when: { kind: 'itemExists' } },
          { kind: 'delete', key: at('deleted'), when: { kind: 'itemExists' } },
          { kind: 'check', key: at('checked'), when: { kind: 'compare', attribute: 'n', op: '<', value: 2 } },
        ];
        expect(await store.transact(writes)).toEqual({ kind: 'written' });
        expect((await store.get(at('new', 'control'), { consistent: true }))?.['n']).toBe(1);
        expect((await read('updated'))?.['n']).toBe(2);
        expect(await read('deleted')).toBeUndefined();
      });

      it('does nothing when one condition fails, and names every failure with its item', async () => {
        await put('a', { n: 1 });
        await put('b', { n: 1 });
        const outcome = await store.transact([
          { kind: 'put', key: at('new'), item: {} },
          { kind: 'update', key: at('a'), set: { n: 2 }, when: { kind: 'compare', attribute: 'n', op: '=', value: 9 } },
          { kind: 'delete', key: at('none'), when: { kind: 'itemExists' } },
          { kind: 'check', key: at('b'), when: { kind: 'compare', attribute: 'n', op: '=', value: 1 } },
        ]);
        expect(outcome).toEqual({
          kind: 'refused',
          failures: [{ index: 1, current: { pk, sk: 'a', n: 1 } }, { index: 2 }],
        });
        expect(await read('new')).toBeUndefined();
        expect((await read('a'))?.['n']).toBe(1);
      });

      it('takes 100 writes, and rejects none, 101, and two on one item', async () => {
        const writes = Array.from(
          { length: 101 },
          (_, index): TransactWrite => ({ kind: 'put', key: at(`k${index}`), item: {} }),
        );
        expect((await store.transact(writes.slice(0, 100))).kind).toBe('written');
        await isFault(store.transact(writes), 'rejected');
        await isFault(store.transact([]), 'rejected');
        await isFault(store.transact([writes[0]!, { kind: 'delete', key: at('k0') }]), 'rejected');
      });

      it('accepts at most 4 MB in total, in UTF-8 bytes, and writes nothing of a larger one', async () => {
        const puts = (count: number) =>
          Array.from(
            { length: count },
            (_, index): TransactWrite => ({ kind: 'put', key: at(`k${index}`), item: { text: '中'.repeat(130_000) } }),
          );
        expect((await store.transact(puts(10))).kind).toBe('written');
        await isFault(store.transact(puts(11)), 'rejected');
        expect(await read('k10')).toBeUndefined();
      });

      it('meets other writers without losing or doubling anything', async () => {
        await put('a', { n: 0 });
        await put('b', { n: 0 });
        const outcomes = await Promise.all(
          Array.from({ length: 12 }, async (_, index) => {
            const both: TransactWrite[] = [
              { kind: 'update', key: at('a'), add: { n: 1 } },
              { kind: 'update', key: at('b'), add: { n: 1 } },
            ];
            return (await store.transact(index % 2 === 0 ? both : both.reverse())).kind;
          }),
        );
        const written = outcomes.filter((kind) => kind === 'written').length;
        expect(written).toBeGreaterThan(0);
        expect(outcomes.every((kind) => kind === 'written' || kind === 'contended')).toBe(true);
        expect((await read('a'))?.['n']).toBe(written);
        expect((await read('b'))?.['n']).toBe(written);
      });

      it('lets exactly one of many concurrent transactions on one version win', async () => {
        await put('a', { rv: 1 });
        const outcomes = await Promise.all(
          Array.from({ length: 10 }, (_, writer) =>
            store.transact([
              {
                kind: 'update',
                key: at('a'),
                set: { rv: 2 },
                when: { kind: 'compare', attribute: 'rv', op: '=', value: 1 },
              },
              { kind: 'put', key: at(`log-${writer}`), item: {} },
            ]),
          ),
        );
        // Under contention a real table may refuse them all; it must never let two through.
        const winners = outcomes.flatMap((outcome, writer) => (outcome.kind === 'written' ? [`log-${writer}`] : []));
        expect(winners.length).toBeLessThanOrEqual(1);
        const logs = await store.query({ table: 'objects', pk, beginsWith: 'log-', consistent: true });
        expect(sortKeys(logs.items)).toEqual(winners);
      });
    });

    describe('queries', () => {
      const query = (request: Partial<Parameters<ItemStore['query']>[0]> = {}) =>
        store.query({ table: 'objects', pk, consistent: true, ...request });

      it('answers nothing for a partition that is not there', async () => {
        expect(await query()).toEqual({ items: [] });
      });

      it('orders by UTF-8 bytes, not by UTF-16 units', async () => {
        const keys = ['a', 'B', 'ä', '~', 'z', '节', '\uFF5E', '\u{1F680}', 'a/b', 'a-b', 'ab'];
        await Promise.all(keys.map((sk) => put(sk)));
        const page = await query();
        const byBytes = [...keys].sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
        expect(sortKeys(page.items)).toEqual(byBytes);
        expect([...keys].sort(compareKeys)).toEqual(byBytes);
      });

      describe('over a, b, c, d, e', () => {
        beforeEach(async () => {
          await Promise.all(['a', 'b', 'c', 'd', 'e'].map((sk, index) => put(sk, { index, extra: 'x' })));
        });

        it.each<[string, Partial<Parameters<ItemStore['query']>[0]>, string]>([
          ['all', {}, 'abcde'],
          ['after an item', { after: 'b' }, 'cde'],
          ['after a gap', { after: 'bb' }, 'cde'],
          ['after the last', { after: 'e' }, ''],
          ['through an item', { through: 'c' }, 'abc'],
          ['through a gap', { through: 'cc' }, 'abc'],
          ['after and through', { after: 'a', through: 'd' }, 'bcd'],
          ['after beyond through', { after: 'd', through: 'b' }, ''],
          ['after equal to through', { after: 'c', through: 'c' }, ''],
          ['beginsWith', { beginsWith: 'c' }, 'c'],
          ['beginsWith nothing of it', { beginsWith: 'cx' }, ''],
          ['eventually consistent', { after: 'b', consistent: false }, 'cde'],
        ])('%s', async (_, request, expected) => {
          const page = await query(request);
          expect(sortKeys(page.items).join('')).toBe(expected);
        });

        it('projects the attributes asked for and the keys', async () => {
          const page = await query({ attributes: ['index', 'never'], through: 'a' });
          expect(page.items).toEqual([{ pk, sk: 'a', index: 0 }]);
        });

        it.each([
          ['ascending', {}, 'abcde'],
          ['through', { through: 'd' }, 'abcd'],
        ])('pages %s two at a time until nothing is left', async (_, request, expected) => {
          let seen = '';
          let after: string | undefined;
          for (let page = 0; page < 10; page += 1) {
            const answer = await query({ ...request, limit: 2, ...(after === undefined ? {} : { after }) });
            expect(answer.items.length).toBeLessThanOrEqual(2);
            seen += sortKeys(answer.items).join('');
            after = answer.next;
            if (after === undefined) break;
          }
          expect(seen).toBe(expected);
          expect(after).toBeUndefined();
        });
      });

      it('pages within a prefix, and starts before or after it without error', async () => {
        await Promise.all(['m/1', 'm/2', 'm/3', 'l/9', 'n/0'].map((sk) => put(sk)));
        const first = await query({ beginsWith: 'm/', limit: 2 });
        expect(sortKeys(first.items)).toEqual(['m/1', 'm/2']);
        const second = await query({ beginsWith: 'm/', limit: 2, after: first.next! });
        expect(sortKeys(second.items)).toEqual(['m/3']);
        expect(sortKeys((await query({ beginsWith: 'm/', after: 'a' })).items)).toEqual(['m/1', 'm/2', 'm/3']);
        expect(sortKeys((await query({ beginsWith: 'm/', after: 'z' })).items)).toEqual([]);
      });

      it('ends a page at about 1 MB and continues from there', async () => {
        const text = 'x'.repeat(300_000);
        for (const sk of ['a', 'b', 'c', 'd', 'e']) await put(sk, { text });
        const first = await query({ attributes: [] });
        expect(first.items.length).toBeLessThan(5);
        expect(first.next).toBe(first.items.at(-1)?.['sk']);
        const rest = await query({ attributes: [], after: first.next! });
        expect([...sortKeys(first.items), ...sortKeys(rest.items)]).toEqual(['a', 'b', 'c', 'd', 'e']);
      });
    });

    describe('scans', () => {
      const idOf = (item: { readonly pk?: unknown; readonly sk?: unknown }): string => `${item.pk} ${item.sk}`;
      /** Ours of the table, all pages of all segments. */
      const scanAll = async (request: Partial<Parameters<ItemStore['scan']>[0]> = {}): Promise<Item[]> => {
        const { segments = 1 } = request;
        const found: Item[] = [];
        for (let segment = 0; segment < segments; segment += 1) {
          let after: ItemPosition | undefined;
          let pages = 0;
          do {
            const page = await store.scan({
              table: 'control',
              consistent: true,
              ...request,
              segment,
              segments,
              ...(after === undefined ? {} : { after }),
            });
            if (request.limit !== undefined) expect(page.items.length).toBeLessThanOrEqual(request.limit);
            found.push(...page.items);
            after = page.next;
            pages += 1;
          } while (after !== undefined && pages < 2_000);
          expect(after).toBeUndefined();
        }
        return found.filter((item) => String(item['pk']).startsWith(`${pk}-`));
      };
      const fill = (partitionCount: number, of: Item = {}): Promise<unknown> =>
        Promise.all(
          Array.from({ length: partitionCount * 3 }, (_, index) =>
            store.write({
              kind: 'put',
              key: { table: 'control', pk: `${pk}-${Math.floor(index / 3)}`, sk: `${'abc'[index % 3]}` },
              item: { ...of, index },
            }),
          ),
        );
      const indexes = (items: readonly Item[]): unknown[] =>
        items.map((item) => item['index']).sort((one, other) => Number(one) - Number(other));
      const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

      it.each([1, 2, 7, 32])('returns every item once, in %i segments', async (segments) => {
        await fill(40);
        const found = await scanAll({ segments });
        expect(indexes(found)).toEqual(upTo(120));
        expect(new Set(found.map(idOf)).size).toBe(120);
      });

      it.each([1, 5])('pages two at a time until nothing is left, in %i segments', async (segments) => {
        await fill(9);
        expect(indexes(await scanAll({ segments, limit: 2 }))).toEqual(upTo(27));
      });

      it('returns the same order again', async () => {
        await fill(10);
        expect((await scanAll()).map(idOf)).toEqual((await scanAll()).map(idOf));
      });

      it('keeps to its table, and finds nothing where nothing is', async () => {
        await store.write({ kind: 'put', key: { table: 'objects', pk: `${pk}-0`, sk: 'a' }, item: {} });
        expect(await scanAll({ segments: 3 })).toEqual([]);
      });

      it('projects the attributes asked for and the keys', async () => {
        await fill(1, { extra: 'x' });
        const found = await scanAll({ attributes: ['index', 'never'] });
        expect(found[0]).toEqual({ pk: `${pk}-0`, sk: 'a', index: 0 });
      });

      it('returns all of an item, eventually consistent too', async () => {
        await fill(1, { list: [1, 'two'], yes: true });
        const found = await scanAll({ consistent: false, segments: 2 });
        expect(found).toContainEqual({ pk: `${pk}-0`, sk: 'c', list: [1, 'two'], yes: true, index: 2 });
      });

      it.for(options.scanNeedsStart ? ['first'] : ['first', 'last'])(
        'meets once what was there all the while, though the %s item of each page is deleted and others are put',
        async (deleted) => {
          await fill(12);
          const seen: Item[] = [];
          let after: ItemPosition | undefined;
          for (let page = 0; page < 2_000; page += 1) {
            const answer = await store.scan({
              table: 'control',
              segment: 0,
              segments: 1,
              limit: 5,
              consistent: true,
              ...(after === undefined ? {} : { after }),
            });
            seen.push(...answer.items);
            after = answer.next;
            if (after === undefined) break;
            const gone = answer.items.at(deleted === 'first' ? 0 : -1);
            if (gone === undefined || !idOf(gone).startsWith(`${pk}-`)) continue;
            const key = { table: 'control', pk: gone['pk'] as string, sk: gone['sk'] as string } as const;
            await store.write({ kind: 'delete', key });
            await store.write({ kind: 'put', key: { table: 'control', pk: `${pk}-new-${page}`, sk: 'a' }, item: {} });
          }
          const ours = seen.filter((item) => String(item['pk']).startsWith(`${pk}-`) && item['index'] !== undefined);
          expect(indexes(ours)).toEqual(upTo(36));
          expect(new Set(seen.map(idOf)).size).toBe(seen.length);
        },
      );

      it('ends a page at about 1 MB and continues from there', async () => {
        await fill(2, { text: 'x'.repeat(300_000) });
        const first = await store.scan({ table: 'control', segment: 0, segments: 1, consistent: true, attributes: [] });
        expect(first.next).toBeDefined();
        expect((await scanAll({ attributes: ['index'] })).map((item) => item['index'])).toHaveLength(6);
        for (const { pk: partition, sk } of (await scanAll()) as { pk: string; sk: string }[]) {
          await store.write({ kind: 'delete', key: { table: 'control', pk: partition, sk } });
        }
      });

      it('rejects a segment that is none', async () => {
        const request = { table: 'control', consistent: true } as const;
        await isFault(store.scan({ ...request, segment: 2, segments: 2 }), 'rejected');
        await isFault(store.scan({ ...request, segment: -1, segments: 2 }), 'rejected');
        await isFault(store.scan({ ...request, segment: 0, segments: 33 }), 'rejected');
      });
    });

    it('returns what was put, whatever it was', async () => {
      // Names without escapes: after a name `\"`, JSON.parse of Node.js 24.21 may read `"a` as that name.
      const isPlain = (name: string): boolean => JSON.stringify(name) === `"${name}"`;
      const value = fc.letrec<{ value: AttributeValue }>((tie) => ({
        value: fc.oneof(
          { maxDepth: 3 },
          fc.string({ unit: 'grapheme', maxLength: 12 }),
          fc.maxSafeInteger(),
          fc.boolean(),
          fc.uint8Array({ minLength: 1, maxLength: 12 }),
          fc.array(tie('value'), { maxLength: 3 }),
          fc.dictionary(fc.string({ minLength: 1, maxLength: 6 }).filter(isPlain), tie('value'), {
            maxKeys: 3,
            noNullPrototype: true,
          }),
        ) as fc.Arbitrary<AttributeValue>,
      })).value;
      const items = fc.dictionary(
        fc.string({ minLength: 1, maxLength: 6 }).filter((name) => isPlain(name) && name !== 'pk' && name !== 'sk'),
        value,
        { maxKeys: 5, noNullPrototype: true },
      );
      await fc.assert(
        fc.asyncProperty(items, async (item) => {
          await put('any', item);
          expect(await read('any')).toEqual({ ...item, pk, sk: 'any' });
        }),
        { numRuns: 40 },
      );
    });
  });
}
