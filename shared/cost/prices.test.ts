import { describe, expect, it } from 'vitest';
import { PRICE_LIST, parsePriceList } from './prices.ts';

const { readOn, region, prices } = PRICE_LIST;

describe('a list of prices', () => {
  it('is ours, dated and with a source for each price', () => {
    expect(parsePriceList(PRICE_LIST)).toEqual({ kind: 'prices', list: PRICE_LIST });
  });

  it.each([
    ['no object', null, ['(the list): must be an object']],
    ['a wrong date', { readOn: 'today', region, prices }, ['readOn: must be YYYY-MM-DD']],
    ['no region', { readOn, prices }, ['region: must name a region']],
    ['no prices', { readOn, region }, ['prices: must be an object']],
    [
      'a price that is text',
      { readOn, region, prices: { ...prices, writeUnit: { ...prices.writeUnit, dollars: '0.6' } } },
      ['prices.writeUnit.dollars: must be a number, 0 or more'],
    ],
    [
      'a price below nothing',
      { readOn, region, prices: { ...prices, readUnit: { ...prices.readUnit, dollars: -1 } } },
      ['prices.readUnit.dollars: must be a number, 0 or more'],
    ],
    [
      'a missing price',
      { readOn, region, prices: { ...prices, keyMonth: undefined } },
      ['prices.keyMonth: is missing'],
    ],
    [
      'an unexpected price',
      { readOn, region, prices: { ...prices, lunch: prices.keyMonth } },
      ['prices.lunch: is no price that is counted with'],
    ],
    ['a field too many', { readOn, region, prices, vat: 1 }, ['vat: is no field of a price list']],
  ])('with %s is refused, and the field is named', (_what, value, faults) => {
    expect(parsePriceList(value)).toEqual({ kind: 'invalid', faults });
  });
});
