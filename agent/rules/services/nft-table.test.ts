import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NftKernel } from '../../../test/support/nft-kernel.ts';
import { type NftChain, type NftSet, type NftState, type NftTable, nftUpdate } from './nft-table.ts';

const table = (chains: Record<string, NftChain>, sets: Record<string, NftSet> = {}): NftTable => ({
  family: 'ip',
  name: 'test',
  chains: new Map(Object.entries(chains)),
  sets: new Map(Object.entries(sets)),
});

const rule = (text: string) => [{ counter: text }];
const map = (elements: Record<string, string>): NftSet => ({
  type: 'ipv4_addr',
  map: 'verdict',
  elements: new Map(Object.entries(elements).map(([key, chain]) => [key, [key, { goto: { target: chain } }]])),
});

describe('an update', () => {
  const one = table({ web: { rules: [rule('a')] }, base: { rules: [] } }, { services: map({ '10.0.0.1': 'web' }) });

  it('replaces the table when what the kernel has is unknown', () => {
    const { commands } = nftUpdate(undefined, one);
    expect(commands.slice(0, 3).map((each) => Object.keys(each)[0])).toEqual(['add', 'delete', 'add']);
  });

  it('is nothing when nothing differs', () => {
    const { state } = nftUpdate(undefined, one);
    expect(nftUpdate(state, structuredClone(one)).commands).toEqual([]);
  });

  it('has the chain that differs alone', () => {
    const { state } = nftUpdate(undefined, one);
    const next = { ...one, chains: new Map([...one.chains, ['web', { rules: [rule('b')] }]]) };
    expect(nftUpdate(state, next).commands).toEqual([
      { flush: { chain: { family: 'ip', table: 'test', name: 'web' } } },
      { add: { rule: { family: 'ip', table: 'test', chain: 'web', expr: rule('b') } } },
    ]);
  });

  it('deletes a chain one update after the one that emptied it', () => {
    let { state } = nftUpdate(undefined, one);
    const commandsFor = (next: NftTable) => {
      const update = nftUpdate(state, next);
      state = update.state;
      return JSON.stringify(update.commands);
    };
    const without = table({ base: { rules: [] } }, { services: map({}) });
    expect(commandsFor(without)).not.toContain('"delete":{"chain"');
    expect(commandsFor(without)).toBe('[]');
    const another = table({ base: { rules: [rule('c')] } }, { services: map({}) });
    expect(commandsFor(another)).toContain('"delete":{"chain":{"family":"ip","table":"test","name":"web"}}');
  });

  it('brings a kernel from any table to any other, step by step', () => {
    const names = fc.constantFrom('a', 'b', 'c');
    const tables = fc
      .record({
        chains: fc.dictionary(names, fc.array(fc.constantFrom('1', '2'), { maxLength: 2 })),
        elements: fc.dictionary(fc.constantFrom('x', 'y', 'z'), names),
        hasOther: fc.boolean(),
      })
      .map(({ chains, elements, hasOther }) =>
        table(Object.fromEntries(Object.entries(chains).map(([name, rules]) => [name, { rules: rules.map(rule) }])), {
          services: map(
            Object.fromEntries(Object.entries(elements).filter(([, chain]) => Object.hasOwn(chains, chain))),
          ),
          ...(hasOther ? { other: { type: 'ipv4_addr', elements: new Map([['x', 'x']]) } } : {}),
        }),
      );
    fc.assert(
      fc.property(fc.array(tables, { minLength: 1, maxLength: 6 }), (steps) => {
        const kernel = new NftKernel();
        let state: NftState | undefined;
        for (const next of steps) {
          const update = nftUpdate(state, next);
          kernel.apply(update.commands);
          state = update.state;
          expect(kernel.content('ip test')).toEqual(NftKernel.contentOf(next));
        }
      }),
    );
  });
});
