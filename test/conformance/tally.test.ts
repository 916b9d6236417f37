import { describe, expect, it } from 'vitest';
import { areasOf, totalOf } from './tally.ts';

const deviations = [{ id: 'HB-27', deviation: 'D2', reason: 'ours' }];
const area = (areas: ReturnType<typeof areasOf>, code: string) => areas.find((each) => each.code === code);

describe('the tally of conformance cases', () => {
  it('counts a case once, however many tests cover it, and only those with an id', () => {
    const areas = areasOf(
      [
        { title: 'ZS-13 one', status: 'passed' },
        { title: 'ZS-13 another', status: 'passed' },
        { title: 'something else', status: 'failed' },
        { title: 'HB-27 ours', status: 'passed' },
      ],
      deviations,
      [],
    );
    expect(area(areas, 'ZS')).toMatchObject({ passed: 1, deviating: 0, total: 1, wrong: [] });
    expect(area(areas, 'HB')).toMatchObject({ passed: 0, deviating: 1, total: 1, wrong: [] });
    expect(totalOf(areas)).toEqual({ passed: 1, deviating: 1, leftOut: 0, total: 2 });
  });

  it.each(['failed', 'skipped', 'pending'])('reports a case as wrong if one of its tests is %s', (status) => {
    const areas = areasOf(
      [
        { title: 'ZS-13 one', status: 'passed' },
        { title: 'ZS-13 another', status },
      ],
      [],
      [],
    );
    expect(area(areas, 'ZS')).toMatchObject({ passed: 0, total: 1, wrong: ['ZS-13'] });
  });

  it('keeps the cases of the agent apart from others of the same id', () => {
    const areas = areasOf(
      [
        { title: 'RA-05 ranges', status: 'passed' },
        { title: 'RA-05 registration', status: 'failed', ofAgent: true },
        { title: 'LI-01 interval', status: 'passed', ofAgent: true },
      ],
      [{ id: 'agent/LI-01', deviation: 'D1', reason: 'ours' }],
      [],
    );
    expect(area(areas, 'RA')).toMatchObject({ passed: 1, total: 1, wrong: [] });
    expect(area(areas, 'agent/RA')).toMatchObject({ passed: 0, total: 1, wrong: ['agent/RA-05'] });
    expect(area(areas, 'agent/LI')).toMatchObject({ passed: 0, deviating: 1, total: 1 });
  });

  it('reports a deviation that no test covers', () => {
    expect(area(areasOf([], deviations, []), 'HB')).toMatchObject({ total: 1, wrong: ['HB-27'] });
  });

  it('counts a case that is left out, and calls it wrong when a test carries it', () => {
    const leftOut = [{ id: 'agent/GW-01', reason: 'no Windows' }];
    expect(area(areasOf([], [], leftOut), 'agent/GW')).toMatchObject({ passed: 0, leftOut: 1, total: 1, wrong: [] });
    const carried = [{ title: 'GW-01 no dependencies', status: 'passed', ofAgent: true }];
    expect(area(areasOf(carried, [], leftOut), 'agent/GW')).toMatchObject({
      passed: 0,
      leftOut: 0,
      total: 1,
      wrong: ['agent/GW-01'],
    });
  });
});
