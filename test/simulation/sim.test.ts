import { describe, expect, it } from 'vitest';
import { FAULT_NAMES } from '../../simulation/faults/catalogue.ts';
import { runSim } from '../../simulation/run-sim.ts';
import { SIM_EXIT, shrinkFaults, sim } from '../../simulation/sim.ts';

async function outputOf(...args: string[]) {
  const lines: string[] = [];
  const errors: string[] = [];
  const code = await sim(args, { print: (line) => lines.push(line), printError: (line) => errors.push(line) });
  return { code, lines, errors };
}

describe('npm run sim', () => {
  it('ends with faults, marks, seeds, node-hours and steps', async () => {
    const { code, lines } = await outputOf('--seeds', '3..4', '--hours', '0.1', '--nodes', '5');
    expect(code).toBe(SIM_EXIT.holds);
    expect(lines.at(-1)).toMatch(/^2 seeds, 1 node-hours, \d+ steps$/);
    expect(lines.at(-2)).toMatch(/^marks: \d+ of \d+, not hit: /);
  });

  it('prints one JSON line per seed', async () => {
    const { lines } = await outputOf('--seed', '3', '--hours', '0.05', '--json');
    expect(lines.map((line) => JSON.parse(line).seed)).toEqual([3]);
  });

  it('runs the same in a SQLite file, which agrees with the memory store on every write', async () => {
    const args = ['--seed', '3', '--hours', '0.05', '--json'];
    const inFile = await outputOf(...args, '--store', 'sqlite');
    expect(inFile.code).toBe(SIM_EXIT.holds);
    expect(inFile).toEqual(await outputOf(...args));
  });

  it('lists its faults', async () => {
    const { lines } = await outputOf('--faults', 'help');
    expect(lines).toHaveLength(FAULT_NAMES.length);
  });

  it.each([
    [['--faults', 'gremlins'], 'no such fault: gremlins'],
    [['--parts', 'gremlins'], 'no such part: gremlins'],
    [['--store', 'disk'], '--store must be memory or sqlite'],
    [['--seeds', '5..4'], '--seeds must be A..B'],
    [['--hours', 'many'], '--hours must be a number'],
    [['--what'], "Unknown option '--what'"],
  ])('refuses %j', async (args, why) => {
    const { code, errors } = await outputOf(...args);
    expect(code).toBe(SIM_EXIT.invalid);
    expect(errors[0]).toContain(why);
  });
});

it('reports step, law and timeline of a failure, and finds it again with fewer faults', async () => {
  const faults = ['apiOutage', 'duplicateBatches', 'splitBatches', 'skew'] as const;
  const plant = { policy: (policy: object) => ({ ...policy, ingestGate: 'off' }) as never };
  const options = { seed: 31, hours: 1, faults, faultsAStorm: 28, plant };
  const { failure } = await runSim(options);
  expect(failure).toMatchObject({ law: 'L5', seed: 31 });
  expect(failure!.step).toBeGreaterThan(0);
  expect(failure!.timeline.join('\n')).toContain('apiOutage begins');
  expect((await shrinkFaults(options, failure!)).faults).toEqual(['apiOutage']);
});
